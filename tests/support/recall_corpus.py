"""Questions in a user's own words and the conversations that answer them, among many with the same words.

`query/recall_stories.txt` holds the stories: a prompt, a tool's output, an answer, and a question that a user may
ask much later. `unseen` questions were not used during the development of recall.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from support.conversation_files import FORMS, Turn, dice

FOLDER = Path(__file__).parents[1] / "search"
FORM_NAMES = sorted(FORMS)
AROUND = (
    Turn(
        "morning! where were we?",
        "On branch main, nothing to commit",
        "Everything is committed. What comes next?",
    ),
    Turn(
        "how did we fix that other one?", "fixup! wip", "With one more test. Shall I look at something else?"
    ),
    Turn(
        "run all tests before you change anything",
        "212 passed, 3 skipped",
        "All tests pass, so we can change it.",
    ),
    Turn("what was the command again?", "make check", "`make check` runs the tests and the linter."),
    Turn("thanks, that works now", "", "Glad that it works. I can commit the fix."),
)
"""Turns that occur in any conversation and say nothing about its topic."""
LONG = 8
"""The number of long conversations that mention almost every story."""


class Question(NamedTuple):
    """A question, and the keys of the sessions that each answer it."""

    text: str
    keys: frozenset[str]
    is_unseen: bool


class Story(NamedTuple):
    """A turn, and the question that must find it; a story without a question is a distractor."""

    turn: Turn
    question: str | None
    is_unseen: bool


def blocks(name: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each story in a file."""
    for block in (FOLDER / name).read_text(encoding="utf-8").split("\n\n"):
        yield dict(line.split(": ", 1) for line in block.strip().splitlines())


def stories() -> list[Story]:
    return [
        Story(
            Turn(told["asked"], told["given"], told["answered"]),
            told.get("question") or told.get("unseen"),
            "unseen" in told,
        )
        for told in blocks("recall_stories.txt")
    ]


# The generated corpus -----------------------------------------------------------------------------------------------


def write_corpus(home: Path) -> list[Question]:
    """Write every story with four distractors, and the long conversations, into a home; return the questions."""
    told, chance = stories(), dice(7)
    talks = [list(_within(story.turn, chance)) for story in told]
    for place in range(len(told)):
        talks += _distractors(place, told, chance)
    talks += [list(_long(told, chance)) for _ in range(LONG)]
    keys = [_write(home, number, talk) for number, talk in enumerate(talks, 1)]
    return [
        Question(story.question, frozenset((key,)), story.is_unseen)
        for story, key in zip(told, keys, strict=False)
        if story.question
    ]


def _write(home: Path, number: int, talk: Sequence[Turn]) -> str:
    form = FORMS[FORM_NAMES[number % len(FORM_NAMES)]]
    # Every prompt is unique: if two sessions share a message, one counts as a copy of the other.
    form.write(
        home,
        number,
        [turn._replace(prompt=f"{turn.prompt} (note {number}-{place})") for place, turn in enumerate(talk)],
    )
    return form.key(number)


def _within(turn: Turn, chance: Random) -> Iterator[Turn]:
    """Yield a turn between two turns of `AROUND`."""
    before, after = chance.sample(AROUND, 2)
    yield before
    yield turn
    yield after


def _distractors(place: int, told: Sequence[Story], chance: Random) -> Iterator[list[Turn]]:
    """Yield conversations that share many words with a story but are not about it."""
    turn = told[place].turn
    first, second, third = (
        story.turn for story in chance.sample([one for one in told if one.turn != turn], 3)
    )
    yield list(_within(Turn(_some(turn.prompt, chance), second.output, first.answer), chance))
    yield [
        Turn(_some(first.prompt, chance), first.output, _some(turn.answer, chance)),
        Turn(_some(second.prompt, chance), second.output, second.answer),
        Turn(_some(turn.prompt, chance), third.output, _some(third.answer, chance)),
    ]
    listed = "\n".join(f"notes/{number}.md: {one.prompt}" for number, one in enumerate((first, turn, second)))
    yield list(
        _within(Turn("list the notes of last month", listed, "These are the notes of last month."), chance)
    )
    often = " ".join(chance.choices(turn.prompt.split(), k=6))
    yield list(_within(Turn(f"{_some(third.prompt, chance)} {often}", third.output, third.answer), chance))


def _long(told: Sequence[Story], chance: Random) -> Iterator[Turn]:
    """Yield the turns of a long conversation with pieces of almost every story."""
    for _ in range(len(told)):
        asked, given, answered = (story.turn for story in chance.sample(told, 3))
        yield Turn(_some(asked.prompt, chance), given.output, _some(answered.answer, chance))


def _some(text: str, chance: Random) -> str:
    """Return half of the words of a text, in order, or the first half of a text with few words."""
    words = text.split()
    if len(words) < len(AROUND):
        return text[: len(text) // 2]
    kept = sorted(chance.sample(range(len(words)), len(words) // 2))
    return " ".join(words[number] for number in kept)


# The demo -----------------------------------------------------------------------------------------------------------


def demo_questions(titles: dict[str, str]) -> list[Question]:
    """Return the questions about the demo; `titles` has the titles of its sessions by key."""
    lines = (FOLDER / "recall_demo_questions.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for asked, answer in zip(lines[::2], lines[1::2], strict=True):
        kind, text = asked.split(": ", 1)
        starts = tuple(answer.removeprefix("title: ").split("|"))
        keys = frozenset(key for key, title in titles.items() if title.startswith(starts))
        assert keys, f"no session is called {starts}"
        found.append(Question(text, keys, kind == "unseen"))
    return found
