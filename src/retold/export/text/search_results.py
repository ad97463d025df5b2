"""Conversations that a search found, for people and for programs."""

from __future__ import annotations

import json

from retold.export.text.table import day_of, project_name

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.search.results import MessageHit, SearchResult
    from retold.search.scan_job import ResultPlace


FATES = {"rewound": "taken back", "compacted": "before the compression", "superseded": "written anew"}
"""What became of what is not live any more."""
_SPEAKERS = {"user": "you", "assistant": "agent", "system": "notice"}


def conversation_lines(conversation: SearchResult) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of a conversation, each in pieces with their styles."""
    project = conversation.project
    when = day_of(conversation.ended_at)
    name = project_name(project["root"], project["hash"], project["native_key"])
    yield [("title", conversation.title or "(no prompt is left)")]
    yield [("faint", f"{when}  {name}  {conversation.key}")]
    for hit in conversation.hits:
        yield [("faint", "  "), *hit_pieces(hit)]


def hit_pieces(hit: MessageHit) -> list[tuple[str, str]]:
    """Return a place where it is said, in pieces: who said it, and the words with what was looked for apart."""
    return [("faint", f"{_place(hit)}: "), *marked(hit)]


def _place(hit: MessageHit) -> str:
    """Return who said it or which tool gave it, and what became of it."""
    who = speaker(hit)
    return who if hit.fate == "live" else f"{who} ({hit.fate})"


def speaker(hit: MessageHit | ResultPlace) -> str:
    """Return who said it, or which tool gave it."""
    return hit.tool or _SPEAKERS.get(hit.role or "", "summary")


def marked(hit: MessageHit | ResultPlace) -> Iterator[tuple[str, str]]:
    """Yield a snippet in pieces with their styles."""
    place = 0
    for start, end in hit.matches:
        yield "plain", hit.snippet[place:start]
        yield "match", hit.snippet[start:end]
        place = end
    yield "plain", hit.snippet[place:]


def conversation_json(conversation: SearchResult) -> bytes:
    """Return a conversation with its hits, on one line."""
    told = {
        "key": conversation.key,
        "title": conversation.title,
        "project": conversation.project,
        "ended_at": conversation.ended_at,
        "score": round(conversation.score, 4),
        "hits": [
            {
                "message": hit.message,
                "role": hit.role,
                "tool": hit.tool,
                "fate": hit.fate,
                "at": hit.at,
                "snippet": hit.snippet,
                "match": [list(match) for match in hit.matches],
            }
            for hit in conversation.hits
        ],
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
