"""Conversations at a glance, as a page of many shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from retold.archive.queries.conditions import Condition
from retold.archive.queries.listing import among, card_rows
from retold.archive.store import Store, summary_of
from retold.model.report import PICOS


class SessionSummary(msgspec.Struct, frozen=True):
    """What is told of a conversation where there are many."""

    session: int
    """Its id in this archive."""
    key: str
    agent: str
    kind: str
    parent: str | None
    root: str | None
    native_key: str | None
    hash: str | None
    title: str | None
    ended_at: datetime | None
    status: str
    messages: int
    tokens: int | None
    is_estimated: bool
    prompts: int
    tool_errors: int
    models: tuple[str, ...]
    tags: tuple[str, ...]
    picos: int | None
    subagents: int
    is_gone: bool
    """Whether the agent has nothing of it any more: the archive alone does."""


class _EntryCounts(msgspec.Struct):
    prompts: int = 0
    tool_errors: int = 0


class _Summary(msgspec.Struct):
    counts: _EntryCounts = msgspec.field(default_factory=_EntryCounts)
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cost_usd: str | None = None


_DECODER = msgspec.json.Decoder(_Summary)


def glances(
    record: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> list[SessionSummary]:
    """Return at a glance sessions, the newest first."""
    return [_glance(row) for row in card_rows(record, conditions, limit, offset)]


def glances_of(record: Store, sessions: Sequence[int]) -> list[SessionSummary]:
    """Return at a glance some sessions in their order, but for those that have gone meanwhile."""
    found = {card.session: card for card in glances(record, [among(sessions)], len(sessions))}
    return [found[session] for session in sessions if session in found]


def _glance(row: Sequence[Any]) -> SessionSummary:
    agent, kind, root, native_key, project_hash, title, messages, tokens, estimated, subagents, *rest = row
    number, key, parent, ended_at, status, packed, is_there = rest
    told = _DECODER.decode(summary_of(packed))
    return SessionSummary(
        session=number,
        key=key,
        agent=agent,
        kind=kind,
        parent=parent,
        root=root,
        native_key=native_key,
        hash=project_hash,
        title=title,
        ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
        status=status,
        messages=messages,
        tokens=tokens,
        is_estimated=bool(estimated),
        prompts=told.counts.prompts,
        tool_errors=told.counts.tool_errors,
        models=told.models,
        tags=told.tags,
        picos=None if told.cost_usd is None else int(Decimal(told.cost_usd) * PICOS),
        subagents=subagents,
        is_gone=kind != "prompts-only" and not is_there,
    )
