"""Which session goes into which part: each stays where it is, and new ones go to the end."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from retold.lake.items import DatasetItem
from retold.lake.manifest import Part

ROOM = 64 << 20
"""Bytes of files behind which a new part begins: less has to be written anew when a session goes on."""


class PartPlan(msgspec.Struct, frozen=True):
    """A part as it is to be."""

    before: Part
    items: tuple[DatasetItem, ...]

    @property
    def is_changed(self) -> bool:
        """Whether other rows belong into it than are there."""
        return self.before.marks != {item.name: item.mark for item in self.items}

    @property
    def size(self) -> int:
        """The bytes of what goes into it."""
        return sum(item.size for item in self.items)

    def begun(self) -> Part:
        """Return the part while it is written: what is in it is known, and nothing can be relied on."""
        return msgspec.structs.replace(self.before, marks={item.name: "" for item in self.items}, files={})

    def written(self, files: dict[str, int]) -> Part:
        """Return the part when it is written."""
        marks = {item.name: item.mark for item in self.items}
        return msgspec.structs.replace(self.before, marks=marks, files=files)


class _MonthFolder:
    """The parts of one agent and month."""

    def __init__(self) -> None:
        self.parts: dict[int, list[DatasetItem]] = {}
        self._sizes: Counter[int] = Counter()

    def put(self, item: DatasetItem, number: int | None) -> None:
        """Put something into a part; where it is in none, into the last that has room."""
        if number is None:
            number = max(self.parts, default=0)
            held = self._sizes[number]
            number += held >= ROOM or (held > 0 and held + item.size > 2 * ROOM)
        self._sizes[number] += item.size
        self.parts.setdefault(number, []).append(item)


def part_plans(parts: Sequence[Part], items: Iterable[DatasetItem]) -> list[PartPlan]:
    """Return all parts as they are to be; one that nothing goes into is not among them."""
    homes = {(name, part.agent, part.month): part.number for part in parts for name in part.marks}
    shelves: dict[tuple[str, str], _MonthFolder] = {}
    newcomers: list[DatasetItem] = []
    for item in items:
        number = homes.get((item.name, item.agent, item.month))
        if number is None:
            newcomers.append(item)
        else:
            shelves.setdefault((item.agent, item.month), _MonthFolder()).put(item, number)
    for item in newcomers:
        shelves.setdefault((item.agent, item.month), _MonthFolder()).put(item, None)
    known = {part.place: part for part in parts}
    return [
        PartPlan(known.get((*place, number), Part(*place, number)), tuple(held))
        for place, shelf in sorted(shelves.items(), key=lambda one: one[0])
        for number, held in sorted(shelf.parts.items())
    ]
