"""A step counter for regular expressions, and hostile texts made from a pattern.

`re` cannot say how many steps a match takes. `StepCounter` runs the parse tree of `re` with the same backtracking, and
counts a step for each character that it tests. The count is the same on every machine.

A repeat with a bound costs at most its bound for each character, so it is shortened: the growth that is left is
that of repeats without one.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import Any, AnyStr, Literal, NamedTuple

_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")
_compiler: Any = import_module("re._compiler")

SIZES = (8, 16, 32)
"""How often the repeated part of a hostile text occurs."""
_UNBOUNDED = 1_000
"""A repeat that may go on for longer counts as one without a bound."""
_MOST_REPEATS = 3
"""Longest repeat with a bound after shortening."""
_REPEATS = frozenset((_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT))
_CHARACTERS = frozenset((_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN))
_ASSERTIONS = frozenset((_constants.ASSERT, _constants.ASSERT_NOT))
_SMALL_ALPHABET = 6
"""So many kinds of characters are also repeated in pairs."""
_FIXED = "x!->/a@ =\"'\\\n\t.A0_\x00"

Mode = Literal["search", "chain", "match", "fullmatch"]
"""How a pattern is used: at all positions, at the end of the match before until one fails, or once."""
Matcher = Callable[[str, int], Iterator[int]]
"""Yields each position at which a match from the given one may end, in the order in which `re` tries them."""


class TooManySteps(Exception):  # noqa: N818 - it says what happened
    """A match takes more steps than are allowed."""


class Growth(NamedTuple):
    """Steps for one hostile text at sizes 1, 2 and 4."""

    prefix: str
    pump: str
    suffix: str
    steps: tuple[int, ...]

    @property
    def is_linear(self) -> bool:
        """Whether the second doubling adds about twice as many steps as the first; a square adds four times as many."""
        if len(self.steps) < len(SIZES):
            return False
        small, middle, large = self.steps
        return large - middle <= 2.5 * (middle - small) + SIZES[-1]


class StepCounter:
    """Counts the steps of one pattern."""

    def __init__(self, pattern: re.Pattern[AnyStr]) -> None:
        self._is_bytes = isinstance(pattern.pattern, bytes)
        self._tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._flags = self._tree.state.flags
        self._steps, self._most = 0, 100_000
        self._groups: dict[int, tuple[int, int]] = {}
        self._classes: list[Callable[[str], bool]] = []
        self._run = self._sequence(self._tree, self._flags)

    def steps(self, text: str, mode: Mode, most: int = 100_000) -> int:
        """Return how many steps the matches in a text take; raises TooManySteps."""
        self._most = most
        counted = place = 0
        while place <= len(text):
            self._steps = counted + 1
            end = self._end(text, place, is_full=mode == "fullmatch")
            counted = self._steps
            if mode in ("match", "fullmatch") or (mode == "chain" and (end is None or end == place)):
                break
            place = place + 1 if end is None or end == place else end
        return counted

    def end(self, text: str, place: int, *, is_full: bool = False) -> int | None:
        """Return where a match ends that begins at a position; None without one."""
        self._steps = 0
        return self._end(text, place, is_full=is_full)

    def _end(self, text: str, place: int, *, is_full: bool) -> int | None:
        self._groups.clear()
        return next((end for end in self._run(text, place) if not is_full or end == len(text)), None)

    def growth(self, mode: Mode) -> Iterator[Growth]:
        """Yield the growth of the steps for each hostile text."""
        for prefix, pump, suffix in self._hostile_parts():
            counts: list[int] = []
            for size in SIZES:
                try:
                    text = prefix + pump * size + suffix
                    counts.append(self.steps(text, mode))
                except TooManySteps:
                    break
            yield Growth(prefix, pump, suffix, tuple(counts))

    def _step(self) -> None:
        self._steps += 1
        if self._steps > self._most:
            raise TooManySteps

    # The matcher.

    def _sequence(self, tree: Any, flags: int) -> Matcher:
        parts = [self._part(op, argument, flags) for op, argument in tree]
        if len(parts) == 1:
            return parts[0]

        def run(text: str, place: int) -> Iterator[int]:
            if not parts:
                yield place
                return
            stack = [parts[0](text, place)]
            while stack:
                end = next(stack[-1], None)
                if end is None:
                    stack.pop()
                elif len(stack) == len(parts):
                    yield end
                else:
                    stack.append(parts[len(stack)](text, end))

        return run

    def _part(self, op: Any, argument: Any, flags: int) -> Matcher:
        if op in _CHARACTERS:
            return self._character(op, argument, flags)
        if op in _REPEATS:
            return self._repeat(op, argument, flags)
        if op is _constants.AT:
            return self._position(op, argument, flags)
        if op is _constants.BRANCH:
            return self._branch([self._sequence(tree, flags) for tree in argument[1]])
        if op is _constants.SUBPATTERN:
            group, added, removed, tree = argument
            return self._group(group, self._sequence(tree, (flags | added) & ~removed))
        if op is _constants.ATOMIC_GROUP:
            return _first(self._sequence(argument, flags))
        if op in _ASSERTIONS:
            return self._assertion(argument, flags, is_wanted=op is _constants.ASSERT)
        if op is _constants.GROUPREF:
            return self._reference(argument)
        if op is _constants.GROUPREF_EXISTS:
            group, yes, no = argument
            either = self._sequence(yes, flags), self._sequence(no or [], flags)
            return self._choice(group, either)
        raise NotImplementedError(op)

    def _single(self, op: Any, argument: Any, flags: int) -> re.Pattern[Any]:
        """Return one node as a pattern of its own, so that `re` itself says what it matches."""
        state = _parser.State()
        state.flags, state.str = flags, b"" if self._is_bytes else ""
        compiled: re.Pattern[Any] = _compiler.compile(_parser.SubPattern(state, [(op, argument)]), flags)
        return compiled

    def _text(self, text: str) -> Any:
        return text.encode("latin-1") if self._is_bytes else text

    def _test(self, op: Any, argument: Any, flags: int) -> Callable[[str], bool]:
        pattern = self._single(op, argument, flags)
        known: dict[str, bool] = {}

        def test(character: str) -> bool:
            if character not in known:
                known[character] = pattern.match(self._text(character)) is not None
            return known[character]

        self._classes.append(test)
        return test

    def _character(self, op: Any, argument: Any, flags: int) -> Matcher:
        test = self._test(op, argument, flags)

        def run(text: str, place: int) -> Iterator[int]:
            self._step()
            if place < len(text) and test(text[place]):
                yield place + 1

        return run

    def _position(self, op: Any, argument: Any, flags: int) -> Matcher:
        pattern = self._single(op, argument, flags)

        def run(text: str, place: int) -> Iterator[int]:
            self._step()
            if pattern.match(self._text(text), place):
                yield place

        return run

    def _branch(self, branches: list[Matcher]) -> Matcher:
        def run(text: str, place: int) -> Iterator[int]:
            for branch in branches:
                yield from branch(text, place)

        return run

    def _group(self, group: int | None, body: Matcher) -> Matcher:
        if group is None:
            return body

        def run(text: str, place: int) -> Iterator[int]:
            before = self._groups.get(group)
            for end in body(text, place):
                self._groups[group] = place, end
                yield end
            if before is None:
                self._groups.pop(group, None)
            else:
                self._groups[group] = before

        return run

    def _assertion(self, argument: Any, flags: int, *, is_wanted: bool) -> Matcher:
        direction, tree = argument
        body = self._sequence(tree, flags)
        back = tree.getwidth()[0] if direction < 0 else 0

        def run(text: str, place: int) -> Iterator[int]:
            is_met = place >= back and next(body(text, place - back), None) is not None
            if is_met is is_wanted:
                yield place

        return run

    def _reference(self, group: int) -> Matcher:
        def run(text: str, place: int) -> Iterator[int]:
            self._step()
            if group in self._groups:
                start, end = self._groups[group]
                self._steps += end - start
                if text.startswith(text[start:end], place):
                    yield place + end - start

        return run

    def _choice(self, group: int, either: tuple[Matcher, Matcher]) -> Matcher:
        def run(text: str, place: int) -> Iterator[int]:
            return either[group not in self._groups](text, place)

        return run

    def _repeat(self, op: Any, argument: Any, flags: int) -> Matcher:
        low, high, tree = argument
        low, high = shortened(low, high)
        if len(tree) == 1 and tree[0][0] in _CHARACTERS:
            run = self._run_of_characters(op, self._test(tree[0][0], tree[0][1], flags), low, high)
        else:
            run = self._run_of_groups(op, self._sequence(tree, flags), low, high)
        return _first(run) if op is _constants.POSSESSIVE_REPEAT else run

    def _run_of_characters(self, op: Any, test: Callable[[str], bool], low: int, high: int | None) -> Matcher:
        def run(text: str, place: int) -> Iterator[int]:
            last = len(text) if high is None else min(len(text), place + high)
            end = place
            if op is _constants.MIN_REPEAT:
                while True:
                    self._step()
                    if end - place >= low:
                        yield end
                    if end >= last or not test(text[end]):
                        return
                    end += 1
            while end < last and test(text[end]):
                self._step()
                end += 1
            for back in range(end, place + low - 1, -1):
                self._step()
                yield back

        return run

    def _run_of_groups(self, op: Any, body: Matcher, low: int, high: int | None) -> Matcher:
        is_lazy = op is _constants.MIN_REPEAT

        def run(text: str, place: int) -> Iterator[int]:
            ends = [place]  # after each round, and before the first
            rounds = [body(text, place)] if high != 0 else []
            if low == 0 and (is_lazy or not rounds):
                yield place
            while rounds:
                self._step()
                del ends[len(rounds) :]
                end = next(rounds[-1], None)
                if end is None:
                    rounds.pop()
                    if not is_lazy and len(rounds) >= low:
                        yield ends[-1]
                elif end > ends[-1] or len(rounds) <= low:  # `re` ends a repeat at an empty round, too
                    ends.append(end)
                    if is_lazy and len(rounds) >= low:
                        yield end
                    if high is None or len(rounds) < high:
                        rounds.append(body(text, end))
                    elif not is_lazy:
                        yield end

        return run

    # Hostile texts.

    @cached_property
    def _alphabet(self) -> list[str]:
        """One character for each combination of classes of the pattern that it belongs to."""
        candidates = [*_literals(self._tree), *_FIXED]
        if not self._is_bytes:
            candidates += ["é", "日"]
        chosen: dict[tuple[bool, ...], str] = {}
        for character in candidates:
            if self._is_bytes and ord(character) > 0xFF:
                continue
            chosen.setdefault(tuple(test(character) for test in self._classes), character)
        return list(chosen.values())

    def _hostile_parts(self) -> Iterator[tuple[str, str, str]]:
        """Yield beginnings, parts to repeat and ends, for each repeat without a bound; without one, no text is hostile."""
        alphabet = self._alphabet
        pairs = (
            ["".join(pair) for pair in product(alphabet, repeat=2)]
            if len(alphabet) <= _SMALL_ALPHABET
            else []
        )
        chosen: dict[tuple[str, str], None] = {}
        for before, body in self._repeats(self._tree, [""], self._flags):
            rounds = [text for text in body[:3] if text]
            for lead in before[:2]:
                again = [lead + one for one in rounds]
                chosen.update(((lead, pump), None) for pump in (*rounds, *alphabet, *pairs))
                chosen.update(
                    (("", pump), None) for pump in (*again, *rounds, lead, *alphabet, *pairs) if pump
                )
        yield from ((lead, pump, end) for (lead, pump), end in product(chosen, ("", "\x00", "\n!")))

    def _repeats(self, tree: Any, before: list[str], flags: int) -> Iterator[tuple[list[str], list[str]]]:
        """Yield, for each repeat without a bound, texts that lead to it and texts of one round."""
        for op, argument in tree:
            inner = [argument[2]] if op in _REPEATS else _inner(op, argument)
            if op in _REPEATS and shortened(*argument[:2])[1] is None:
                yield before, self._samples(argument[2], flags)
            for part in inner:
                yield from self._repeats(part, before, flags)
            if op not in _ASSERTIONS:
                last = self._node_samples(op, argument, flags)
                before = [one + two for one, two in product(before, last)][:6] or before

    def _samples(self, tree: Any, flags: int) -> list[str]:
        """Return a few texts that a part of the pattern matches, if its assertions allow it."""
        texts = [""]
        for op, argument in tree:
            if op not in _ASSERTIONS:
                texts = [one + two for one, two in product(texts, self._node_samples(op, argument, flags))][
                    :6
                ]
        return texts

    def _node_samples(self, op: Any, argument: Any, flags: int) -> list[str]:
        if op in _CHARACTERS:
            pattern = self._single(op, argument, flags)
            found = [one for one in self._alphabet if pattern.match(self._text(one))]
            if op is _constants.LITERAL:
                found = [chr(argument)]
            return found[:3] or [""]
        if op in _REPEATS:
            low, high = shortened(argument[0], argument[1])
            once = self._samples(argument[2], flags)
            return [text * max(low, 0 if high == 0 else 1) for text in once][:3] + ([""] if low == 0 else [])
        if op is _constants.BRANCH:
            return [text for tree in argument[1] for text in self._samples(tree, flags)[:1]][:6]
        if op in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
            return self._samples(argument if op is _constants.ATOMIC_GROUP else argument[3], flags)
        return [""]


def shortened(low: int, high: Any) -> tuple[int, int | None]:
    """Return the bounds of a repeat with small ones in place of large ones; None is no bound."""
    low = min(low, _MOST_REPEATS)
    if high is _constants.MAXREPEAT or high > _UNBOUNDED:
        return low, None
    return low, max(low, min(high, _MOST_REPEATS))


def _first(body: Matcher) -> Matcher:
    """Return a matcher that never goes back into what it matched."""

    def run(text: str, place: int) -> Iterator[int]:
        end = next(body(text, place), None)
        if end is not None:
            yield end

    return run


def _inner(op: Any, argument: Any) -> list[Any]:
    """Return the parts of the pattern inside a node."""
    if op is _constants.BRANCH:
        return list(argument[1])
    if op is _constants.SUBPATTERN:
        return [argument[3]]
    if op is _constants.ATOMIC_GROUP:
        return [argument]
    if op in _ASSERTIONS:
        return [argument[1]]
    if op is _constants.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part]
    return []


def _literals(tree: Any) -> Iterator[str]:
    """Yield the characters that occur in a pattern, and those beside its ranges."""
    for op, argument in tree:
        if op in (_constants.LITERAL, _constants.NOT_LITERAL):
            yield chr(argument)
        elif op is _constants.IN:
            yield from _literals(argument)
        elif op is _constants.RANGE:
            yield from map(chr, argument)
        elif op in _REPEATS:
            yield from _literals(argument[2])
        else:
            for part in _inner(op, argument):
                yield from _literals(part)
