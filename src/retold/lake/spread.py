"""Conversations that no name puts together, as where a file was renamed: told by who has read all of it, and planned anew."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from retold.agents.registry import AGENTS
from retold.lake.job import TableJob, TablePlan
from retold.lake.told import shown_name
from retold.sessions.conversations import conversation_name, heads


class Spread(msgspec.Struct, frozen=True):
    """A conversation that several jobs tell: what it is called, and its files, as tables have both."""

    agent: str
    conversation: str
    paths: tuple[str, ...]


def encoded(several: Iterable[Spread]) -> str:
    """Return conversations as an option that can be handed on."""
    return msgspec.json.encode(list(several), order="deterministic").decode()


def decoded(text: str) -> tuple[Spread, ...]:
    """Understand what was handed on; raises ValueError for anything else."""
    try:
        return msgspec.json.decode(text, type=tuple[Spread, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"together is not what `spread` returns: {error}") from None


def reunited(plan: TablePlan, several: Sequence[Spread]) -> TablePlan:
    """Return a plan in which each of some conversations is read by one job; the largest is still the first."""
    if not several:
        return plan
    places = _places(plan.jobs)
    told = ([place for sign in _signs(one) for place in places.get(sign, ())] for one in several)
    held: dict[int, list[TableJob]] = {}
    for head, job in zip(heads(len(plan.jobs), filter(None, told)), plan.jobs, strict=True):
        held.setdefault(head, []).append(job)
    jobs = [jobs[0] if len(jobs) == 1 else _joined(jobs) for jobs in held.values()]
    return replace(plan, jobs=sorted(jobs, key=lambda job: -job.size))


def _places(jobs: Sequence[TableJob]) -> dict[tuple[str, str], list[int]]:
    """Return where the jobs are that hold a file, or something said of a conversation."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, job in enumerate(jobs):
        for sign in _known(job):
            found.setdefault((job.agent, sign), []).append(place)
    return found


def _known(job: TableJob) -> Iterator[str]:
    yield from (source.shown for source in job.sources)
    yield from (shown_name(conversation_name(AGENTS[job.agent], group)) for group in job.said)


def _signs(one: Spread) -> Iterator[tuple[str, str]]:
    yield from ((one.agent, sign) for sign in (one.conversation, *one.paths))


def _joined(jobs: Sequence[TableJob]) -> TableJob:
    sources = tuple(source for job in jobs for source in job.sources)
    said = {group: readings for job in jobs for group, readings in job.said.items()}
    return TableJob(jobs[0].agent, sources, said, sum(job.size for job in jobs))
