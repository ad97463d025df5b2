"""A home with sessions of all agents: small and large ones, forks, and prompts of sessions that are gone."""

import json
from pathlib import Path
from random import Random

from support.conversation_files import FORMS, Turn, as_lines, claude_records, dice, turns, uuid, write_file

WORDS = [
    f"{first}{last}"
    for first in ("brack", "salt", "moor", "tide", "fen")
    for last in ("water", "gate", "reed")
]


def talk(chance: Random, count: int) -> list[Turn]:
    """Return turns of made-up words, of which some give back a lot."""

    def text(size: int) -> str:
        return " ".join(chance.choices(WORDS, k=size))

    return [Turn(text(12), text(chance.choice([10, 40, 4000])), text(30)) for _ in range(count)]


def fill(home: Path, count: int, start: int = 0) -> None:
    """Write sessions of all agents into a home: forks of others, and prompts of which nothing else is left, too."""
    for number in range(start, start + count):
        chance = dice(number)
        said = talk(chance, chance.choice([2, 5, 12]))
        form = list(FORMS.values())[number % len(FORMS)]
        form.write(home, number, [Turn(f"{said[0].prompt} rare{number}", *said[0][1:]), *said[1:]])
    for number in range(3):
        first, later = (
            claude_records(number + 900, turns("branching")),
            claude_records(number + 900, turns("on"), 1),
        )
        folder = home / ".claude/projects/-home-ann-dev-almanac"
        write_file(folder / f"{uuid(number + 900)}.jsonl", as_lines(first))
        fork = [{**record, "sessionId": uuid(number + 950)} for record in (*first, *later)]
        write_file(folder / f"{uuid(number + 950)}.jsonl", as_lines(fork))
    lost = [
        {"sessionId": uuid(0xDD000 + number), "messageId": 0, "type": "user", "message": f"lost{number} prompt",
         "timestamp": "2026-02-01T09:00:00.000Z"}
        for number in range(count // 4)
    ]  # fmt: skip
    write_file(home / ".gemini/tmp/almanac/logs.json", json.dumps(lost))
