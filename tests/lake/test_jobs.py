"""Files that are read in pieces, each by itself, tell what an archive of all of them tells."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retold.agents.protocol import AgentHome, Source
from retold.agents.registry import AGENTS
from retold.demo.home import make_home
from retold.lake.jobs import SplitConversation, TableJob, TablePlan, bundle_jobs, join_split, plan_jobs
from retold.model.problem import Problem
from retold.model.tables import TABLES
from support.conversation_files import FORMS, turns
from support.export_inputs import NOW
from support.gemini_home import DAY, GeminiHome, gemini, user
from support.home_tables import (
    DEPENDENT_COLUMNS,
    generated_homes,
    public_homes,
    real_cli_homes,
    resolve_requests,
    row_counts,
    split_conversations,
    tables_from_archive,
    tables_from_files,
    token_totals,
)
from support.synced_archive import Given

pytestmark = pytest.mark.slow

SUMS = frozenset(name for name in TABLES["sessions"].names if name.endswith("_tokens"))
OF_ITS_OWN = (*sorted(SUMS), "requests", "cost_usd", "estimated")
Tables = dict[str, list[dict[str, Any]]]


def hold(folder: Path, given: Given, several: Sequence[SplitConversation] = ()) -> None:
    """Hold jobs to tell what an archive tells, but for what depends on other sessions."""
    expected, found = tables_from_archive(folder, given), tables_from_files(given, several)
    for name, without in (
        ("sessions", DEPENDENT_COLUMNS | SUMS),
        ("messages", DEPENDENT_COLUMNS),
        ("tool_calls", DEPENDENT_COLUMNS),
        ("files_touched", DEPENDENT_COLUMNS),
        ("events", {"session"}),
        ("problems", {"session"}),
    ):
        assert row_counts(found[name], without) == row_counts(expected[name], without), name
    _hold_sums(expected, found)
    requests = resolve_requests(found["requests"])
    assert row_counts(requests, {"session"}) == row_counts(expected["requests"], {"session"})
    assert token_totals(requests) == token_totals(expected["requests"])


def _hold_sums(expected: Tables, found: Tables) -> None:
    """Hold the sums of sessions whose requests no other holds, which alone can be known from their own files."""
    holders: dict[str, set[str]] = {}
    for row in found["requests"]:
        holders.setdefault(row["request"], set()).add(row["conversation"])
    shared = {one for held in holders.values() if len(held) > 1 for one in held}
    own = [
        {row["conversation"]: {name: row[name] for name in OF_ITS_OWN} for row in told["sessions"]}
        for told in (expected, found)
    ]
    alone = (
        set().union(*holders.values()) - shared
    )  # a checkpoint holds none: what it tells was asked elsewhere
    assert any(own[0][name]["cost_usd"] for name in alone)
    assert {name: own[1][name] for name in alone} == {name: own[0][name] for name in alone}


def test_a_home_of_months_is_told_as_its_archive_tells_it(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", NOW)
    hold(tmp_path / "archive", [("ann", tmp_path / "demo" / "home")])


def test_the_homes_that_the_real_cli_wrote(shared: Path, tmp_path: Path) -> None:
    hold(tmp_path / "archive", real_cli_homes(shared))


def test_what_others_published(shared: Path, tmp_path: Path) -> None:
    given = public_homes(shared, tmp_path / "homes")
    # Files that were renamed when they were published: no name tells that they are of one conversation.
    several = split_conversations(tables_from_files(given)["sessions"])
    assert len(several) == 5
    hold(tmp_path / "archive", given, several)


def test_the_homes_whose_totals_are_known(shared: Path, tmp_path: Path) -> None:
    hold(tmp_path / "archive", generated_homes(shared, tmp_path / "homes"))


def test_a_conversation_in_two_homes_is_one_job_and_one_session(tmp_path: Path) -> None:
    form = FORMS["gemini-lines"]
    form.write(tmp_path / "ann", 7, turns("heron"))
    form.write(tmp_path / "backup", 7, turns("heron"))
    given = [("ann", tmp_path / "ann"), ("backup", tmp_path / "backup")]
    (job,) = plan_jobs(given).jobs
    assert len(job.sources) == 2
    (row,) = tables_from_files(given)["sessions"]
    assert (row["home"], row["homes"]) == ("ann", ["ann", "backup"])


def test_a_job_can_be_sent_elsewhere(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", NOW)
    for job in plan_jobs([("ann", tmp_path / "demo" / "home")]).jobs:
        assert pickle.loads(pickle.dumps(job)) == job  # noqa: S301 - our own


def test_a_folder_that_is_named_twice_is_looked_through_once(tmp_path: Path) -> None:
    FORMS["claude"].write(tmp_path, 7, turns("otter"))
    assert len(plan_jobs([("a", tmp_path), ("b", tmp_path)]).jobs) == 1


def test_a_folder_that_is_no_home_holds_nothing(tmp_path: Path) -> None:
    assert plan_jobs([(None, tmp_path), (None, tmp_path / "nowhere")]).jobs == []


@pytest.mark.parametrize("step", ["find_home", "find_clues", "find_sources", "read"])
def test_a_bug_in_one_home_or_log_costs_no_other(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for place, name in enumerate(("ann", "bob"), start=1):
        chat = FORMS["gemini-lines"].write(tmp_path / name, place << 28, turns("heron"))
        FORMS["claude"].write(tmp_path / name, place << 28, turns("vole"))
        (chat.parents[1] / "logs.json").write_text("[]")
    given = [("ann", tmp_path / "ann"), ("bob", tmp_path / "bob")]
    whole = len(plan_jobs(given).jobs)
    gemini = AGENTS["gemini"]
    before = getattr(gemini, step)

    def failing(where: Path | AgentHome | Source, *rest: Any) -> Any:
        if str(tmp_path / "ann") in str(where if isinstance(where, Path) else where.path):
            raise RuntimeError("a bug")
        return before(where, *rest)

    monkeypatch.setattr(gemini, step, failing)
    plan = plan_jobs(given)
    (refused,) = plan.unread
    assert (refused.agent, refused.home) == ("gemini", "ann")
    assert (refused.problem.code, refused.problem.message) == ("reader-failed", "RuntimeError: a bug")
    assert refused.problem.path.startswith(str(tmp_path / "ann"))
    assert "RuntimeError: a bug" in caplog.text
    assert len(plan.jobs) == whole - (step in ("find_home", "find_sources"))


def test_a_bug_in_what_logs_say_costs_no_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = FORMS["gemini-lines"].write(tmp_path, 1 << 28, turns("heron"))
    entry = {
        "sessionId": "a",
        "messageId": 0,
        "type": "user",
        "message": "heron",
        "timestamp": f"{DAY}T09:00:00Z",
    }
    (chat.parents[1] / "logs.json").write_text(json.dumps([entry]))

    def failing(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("retold.lake.jobs.group_scraps", failing)
    plan = plan_jobs([("ann", tmp_path)], ["gemini"])
    assert [len(job.sources) for job in plan.jobs] == [1]
    assert [(one.problem.code, Path(one.problem.path).name) for one in plan.unread] == [
        ("reader-failed", "logs.json")
    ]


@pytest.mark.parametrize("most", [1, 10, 100])
def test_large_files_stand_alone_and_small_ones_together(most: int) -> None:
    home = AgentHome(Path("h"), Path("h"))
    jobs = [
        TableJob("gemini", (Source(Path(str(size)), home, "c"),), {}, size)
        for size in sorted((1, 2, 3, 5, 50, 200), reverse=True)
    ]
    bundles = bundle_jobs(jobs, most)
    assert [job for bundle in bundles for job in bundle] == jobs
    for bundle in bundles:
        assert len(bundle) == 1 or sum(job.size for job in bundle) <= most
    assert len(bundles) == {1: 6, 10: 4, 100: 2}[most]


def test_jobs_of_which_no_file_is_left_are_bundled_too() -> None:
    assert (
        len(bundle_jobs([TableJob("gemini", (), {"a": ()}, 0), TableJob("gemini", (), {"b": ()}, 0)], 10))
        == 1
    )
    assert bundle_jobs([], 10) == []


def test_what_is_read_together_after_all_may_be_the_largest() -> None:
    home = AgentHome(Path("h"), Path("h"))
    jobs = [
        TableJob("gemini", (Source(Path(f"{size}.jsonl"), home, str(size)),), {}, size)
        for size in (6, 5, 4, 1)
    ]
    several = [SplitConversation("gemini", "of two", ("5.jsonl", "4.jsonl"))]
    plan = join_split(TablePlan(jobs, {}, ()), several)
    assert [job.size for job in plan.jobs] == [9, 6, 1]
    assert [str(source.path) for source in plan.jobs[0].sources] == ["5.jsonl", "4.jsonl"]


@pytest.mark.parametrize("form", sorted(FORMS))
def test_an_id_leads_to_the_cluster_of_its_files(form: str, tmp_path: Path) -> None:
    FORMS[form].write(tmp_path, 7, turns("vole"))
    agent = AGENTS[form.partition("-")[0]]
    home = agent.find_home(tmp_path)
    assert home is not None
    (source,) = (
        one for one in agent.find_sources(home) if isinstance(one, Source) and one.cluster is not None
    )
    readings = agent.read(source)
    assert not isinstance(readings, Problem)
    assert [agent.cluster_of(reading.native_id or "") for reading in readings] == [source.cluster]


def test_prompts_without_the_projects_hash_join_the_session_of_their_folder(tmp_path: Path) -> None:
    made = GeminiHome(tmp_path / "ann")
    made.json("almanac", 1, 1, [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two metres.")])
    made.logs("almanac", [(1, "How high is the tide?"), (2, "Where is the old harbour?")])
    given = [("ann", made.folder)]
    hold(tmp_path / "archive", given)
    kinds = sorted(row["kind"] for row in tables_from_files(given)["sessions"])
    assert kinds == ["main", "prompts-only"]
