"""Search results as styled lines and as JSON."""

from __future__ import annotations

from retold.export.text.formatting import format_day_text, project_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.export.text.formatting import StyledLine
    from retold.search.results import MessageHit, SearchResult
    from retold.search.scan_job import ResultHit


FATES = {"rewound": "taken back", "compacted": "before the compression", "superseded": "rewritten"}
"""Words for the fates of entries that are not live."""
_SPEAKERS = {"user": "you", "assistant": "agent", "system": "notice"}


def format_result(result: SearchResult) -> Iterator[StyledLine]:
    """Yield the title, a line of facts, and a line for each hit."""
    project = result.project
    day = format_day_text(result.ended_at)
    name = project_name(project["root"], project["hash"], project["native_key"])
    yield [("title", result.title or "(no prompt is left)")]
    yield [("faint", f"{day}  {name}  {result.key}")]
    for hit in result.hits:
        yield [("faint", "  "), *format_hit(hit)]


def format_hit(hit: MessageHit) -> StyledLine:
    """Return a hit: the speaker, the fate unless it is live, and the snippet with its matches highlighted."""
    who = hit_speaker(hit)
    fate = "" if hit.fate == "live" else f" ({hit.fate})"
    return [("faint", f"{who}{fate}: "), *split_highlights(hit)]


def hit_speaker(hit: MessageHit | ResultHit) -> str:
    """Return who wrote a hit, or the tool that printed it."""
    return hit.tool or _SPEAKERS.get(hit.role or "", "summary")


def split_highlights(hit: MessageHit | ResultHit) -> Iterator[tuple[str, str]]:
    """Yield a snippet in pieces with their styles, `match` and `plain`."""
    position = 0
    for start, end in hit.matches:
        yield "plain", hit.snippet[position:start]
        yield "match", hit.snippet[start:end]
        position = end
    yield "plain", hit.snippet[position:]


def result_json(result: SearchResult) -> bytes:
    """Return a result with its hits as JSON."""
    import json  # noqa: PLC0415 - text needs none, and it takes longer to import than all modules for text

    fields = {
        "key": result.key,
        "title": result.title,
        "project": result.project,
        "ended_at": result.ended_at,
        "score": round(result.score, 4),
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
            for hit in result.hits
        ],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
