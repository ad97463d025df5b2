"""Arize Phoenix, a real receiver, stores the spans of an export and sums its tokens as retold does."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import available
from retold.export.formats.registry import ExportSession
from support.export_inputs import export_bytes
from support.otlp import decode_proto, span_attributes, spans
from support.phoenix import Phoenix, install_phoenix, run_phoenix
from support.real_gemini import cache_folder
from support.receiver_sessions import receiver_sessions, total_tokens

pytestmark = pytest.mark.heavy
KINDS = {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL", "turn": "UNKNOWN"}
"""The span kind that Phoenix gives each operation."""


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    with available():
        program = install_phoenix(cache_folder(os.environ))
        with run_phoenix(program, tmp_path_factory.mktemp("phoenix")) as receiver:
            yield receiver


def test_a_real_receiver_takes_them(phoenix: Phoenix, tmp_path: Path) -> None:
    conversations = receiver_sessions(tmp_path)
    content = export_bytes("otel-proto", conversations)
    phoenix.send(content)
    phoenix.send(content)  # again: the same spans, and no others
    meant = {span.span_id.hex(): span for span in spans(decode_proto(content))}
    found: dict[str, Any] = {}
    for received in phoenix.spans(len(meant)):
        assert received["context"]["span_id"] not in found
        found[received["context"]["span_id"]] = received
    assert set(found) == set(meant)
    for span_id, span in meant.items():
        one, about = found[span_id], span_attributes(span)
        assert one["name"] == span.name
        assert (one["parent_id"] or "") == span.parent_span_id.hex()
        assert one["context"]["trace_id"] == span.trace_id.hex()
        assert one["span_kind"] == KINDS[about["gen_ai.operation.name"]]
        assert one["status_code"] == ("ERROR" if span.status.code else "UNSET")
        attributes = one["attributes"]
        assert attributes["session.id"] == about["gen_ai.conversation.id"]
        assert attributes.get("llm.token_count.prompt") == about.get("gen_ai.usage.input_tokens")
        assert attributes.get("llm.token_count.completion") == about.get("gen_ai.usage.output_tokens")
        assert attributes.get("tool.name") == about.get("gen_ai.tool.name")
        for kind in ("input", "output"):
            messages = json.loads(about.get(f"gen_ai.{kind}.messages", "[]"))
            roles = [attributes[f"llm.{kind}_messages.{n}.message.role"] for n in range(len(messages))]
            assert roles == [message["role"] for message in messages]
    _are_summed(phoenix, conversations[1:])


def _are_summed(phoenix: Phoenix, conversations: list[ExportSession]) -> None:
    """Check that Phoenix finds the sessions, and that its token sums equal those of retold."""
    sums = {session["session_id"]: session for session in phoenix.sessions()}
    for telling in conversations:
        session = sums[telling.session.key]
        assert len(session["traces"]) == 1
        assert session["token_count_prompt"] == total_tokens(telling, "input")
        assert session["token_count_completion"] == total_tokens(telling, "output", "reasoning")
