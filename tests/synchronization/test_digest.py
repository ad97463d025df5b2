"""The digest of many sessions, from the archive of the demo: what its scripts planted is found again."""

from collections.abc import Iterator

import pytest

from retold.archive.store import Store
from retold.demo.story import Story, StoryCall, stories
from retold.insights.digest import Digest, load_digest
from retold.search.filters import Filters

MENDED = {
    "pytest -q tests/test_slots.py": ("pytest -q", "app/slots.py"),
    "pytest -q tests/test_checkout.py --count 40": ("pytest -q tests/test_checkout.py --count 300", "tests/test_checkout.py"),
    "pytest -q tests/test_stripe.py": ("make migrate-test && pytest -q tests/test_stripe.py", None),
    "bash backup/restore_test.sh": ("docker pull postgres:17 && bash backup/restore_test.sh", None),
    "python build.py": ("uv add pillow && uv run python build.py", None),
    "pytest -q tests/test_capacity.py": ("pytest -q --count 50 tests/test_capacity.py", "app/db.py"),
    "python -m build && twine check dist/*": ("python -m build && twine check dist/*", "pyproject.toml"),
}  # fmt: skip
"""Some of what failed in the demo: what worked then, and a file that was changed for it."""


@pytest.fixture(scope="module")
def whole(demo_env: dict[str, str]) -> Digest:
    with Store(demo_env["RETOLD_HOME"]) as record:
        return load_digest(record, Filters())


def failed_runs() -> Iterator[tuple[Story, str]]:
    for story in stories():
        for beat in story.beats:
            if isinstance(beat, StoryCall) and beat.kind == "run" and beat.fate == "failed":
                yield story, beat.what


def test_every_command_that_failed_is_told_once_in_its_session(whole: Digest) -> None:
    titles = {one.key: one.title for one in whole.sessions}
    told = sorted(
        (titles[one.key], one.value.target) for one in whole.failures if one.value.canonical == "shell_exec"
    )
    planted = sorted((story.title, command) for story, command in failed_runs())
    assert len(planted) > 15
    assert told == planted


def test_every_command_that_failed_was_mended_but_one(whole: Digest) -> None:
    left = [one.value.target for one in whole.failures if one.value.is_open]
    assert left == ["rsync -a --partial /srv/photos/ box:photos/"]


@pytest.mark.parametrize("command", MENDED)
def test_what_mended_it_is_named(whole: Digest, command: str) -> None:
    (failure,) = [one.value for one in whole.failures if one.value.target == command]
    target, file = MENDED[command]
    assert failure.fix is not None
    assert failure.fix.target == target
    assert failure.fix.after
    assert any(path.endswith(file) for path in failure.fix.files) if file else failure.fix.files == ()


def test_decisions_of_the_demo_are_found_and_nothing_else(whole: Digest) -> None:
    assert {one.value.text for one in whole.decisions} == {
        "I would wait until after Christmas.",
        "I would change the signature: a slot is a date and an hour in Berlin, nothing else.",
        '"half a lemon" is a word, not a number; I would keep words in a table: half, a, an, a dozen.',
        "use uv, not pip: uv add pillow",
    }


def test_subagents_count_with_whoever_started_them(whole: Digest) -> None:
    keys = {one.key for one in whole.sessions}
    assert not [key for key in keys if "/" in key and "checkpoint" not in key]
    assert {one.title: one.subagents for one in whole.sessions if one.subagents} == {
        "Christmas pre-orders: stollen per day": 2,
        "Retry Stripe webhooks without booking twice": 1,
        "Find every place that assumes grams": 1,
    }


def test_a_fork_counts_its_own_prompts(whole: Digest) -> None:
    """A fork begins with a copy of what was said before."""
    forks = {story.title: len(story.prompts()) for story in stories() if story.forked_from}
    assert len(forks) > 1
    assert {one.title: one.prompts for one in whole.sessions if one.title in forks} == forks


def test_files_are_one_however_agents_name_them(whole: Digest) -> None:
    """Codex names a file from the project's root, the others from the root of all."""
    (stripe,) = [one for one in whole.files if one.path.endswith("app/routes/stripe.py")]
    assert (stripe.name, stripe.edits, len(stripe.sessions)) == ("crumb-orders/app/routes/stripe.py", 2, 2)
    assert {key.partition(":")[0] for key in stripe.sessions} == {"codex", "gemini"}
    assert [len(one.sessions) for one in whole.files] == sorted(
        (len(one.sessions) for one in whole.files), reverse=True
    )


def test_only_the_newest_are_looked_into(whole: Digest, demo_env: dict[str, str]) -> None:
    with Store(demo_env["RETOLD_HOME"]) as record:
        few = load_digest(record, Filters(), 3)
    assert few.sessions == whole.sessions[:3]
    assert few.left_out == len(whole.sessions) - 3
    assert whole.left_out == 0


def test_of_prompts_alone_nothing_is_open(whole: Digest) -> None:
    lost = {one.key for one in whole.sessions if one.kind == "prompts-only"}
    assert lost
    assert not lost & {one.key for one in whole.open_ends}
