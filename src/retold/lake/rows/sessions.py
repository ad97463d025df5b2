"""The row of a session itself."""

from collections.abc import Iterator

from retold.lake.rows.figures import TOKENS, dollars_of
from retold.lake.told import RowSource
from retold.model.session import SourceFile
from retold.model.usage import LARGEST, stored_figure


def session_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield it."""
    session = told.session
    project, counts, usage = session.project, session.counts, session.usage
    yield (
        session.native_id,
        session.kind,
        session.parent,
        project.native_key,
        project.hash,
        project.evidence,
        sorted({source.home for source in session.sources if source.home is not None}),
        session.title,
        session.summary,
        session.first_prompt,
        session.last_prompt,
        session.tags,
        session.models,
        session.started_at,
        session.ended_at,
        session.are_times_derived,
        session.status,
        counts.prompts,
        counts.messages,
        counts.tool_calls,
        counts.tool_errors,
        usage.requests,
        *(stored_figure(getattr(usage, name), LARGEST) for name in TOKENS),
        usage.estimated,
        dollars_of(session.cost_usd),
        [_file(source) for source in session.sources],
        sum(source.bytes for source in session.sources),
        session.coverage.records,
        session.coverage.opaque,
        len(session.problems),
    )


def _file(source: SourceFile) -> dict[str, object]:
    return {
        "home": source.home,
        "path": source.path,
        "format": source.format,
        "bytes": source.bytes,
        "state": source.state,
    }
