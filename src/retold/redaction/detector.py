"""Where the secrets of a text are."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from retold.redaction import assignments, blocks, calls, commands, persons, phrases, surroundings, tokens
from retold.redaction.budget import Budget
from retold.redaction.encoded import SHORTEST, blocks_of, encoded, encoded_block, runs
from retold.redaction.finding import PLACEHOLDER, Secret, apart
from retold.redaction.folding import Unfolded, joined, unfolded, wrapped
from retold.redaction.judgement import is_mixed
from retold.redaction.words import alternatives, places, wanted

_DULL = re.compile(r"[A-Za-z0-9_-]{0,19}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What most texts of a session are, counted and not measured: names of tools, words, ids."""
_CASED = re.compile(f"{alternatives(wanted((*tokens.ANCHORS, *persons.ANCHORS)))}|[_.-][A-Za-z0-9_-]{{20}}")

_CASELESS_RULES = (assignments, surroundings, commands, calls, blocks, phrases)
_ANCHORS = tuple(anchor for rules in _CASELESS_RULES for anchor in rules.ANCHORS)
_CASELESS = wanted(_ANCHORS)
_ANY = re.compile(alternatives(_CASELESS))
_LAYERS = 2
"""How many times a text is read without what hides something."""
_start_of = attrgetter("start")
_SHORT = 400
"""In a short text, it takes longer to look for each anchor than to look for all at once; in a long one it is far faster."""


def findings(text: str, budget: Budget | None = None) -> list[Secret]:
    """Return the secrets of a text, in order, none over another; raises OverBudget where it takes too many steps."""
    if _DULL.match(text):
        return []
    budget = budget or Budget(len(text))
    found = _found(text, budget)
    found += _unfolded(text, budget)
    found += _parted(text, found, budget)
    if found and "[redacted:" in text:
        found = _outside_placeholders(text, found)
    return apart(found) if found else found


def _outside_placeholders(text: str, found: list[Secret]) -> list[Secret]:
    """Leave out what begins in a placeholder: `url-password:1]@host` names no password."""
    holders = [holder.span() for holder in PLACEHOLDER.finditer(text)]
    starts = [start for start, _ in holders]

    def is_outside(finding: Secret) -> bool:
        before = bisect_right(starts, finding.start) - 1
        return before < 0 or finding.start >= holders[before][1]

    return [*filter(is_outside, found)]


def _found(text: str, budget: Budget) -> list[Secret]:
    found: list[Secret] = []
    is_short = len(text) < _SHORT
    if not is_short or _CASED.search(text):
        found += tokens.tokens(text, budget)
        found += persons.persons(text, budget)
    if len(text) >= SHORTEST:
        found += _runs(text, budget)
    low = lower(text)
    seen = places(_CASELESS, low) if not is_short or _ANY.search(low) else {}
    if seen:
        found += surroundings.surrounded(text, low, seen, budget)
        found += assignments.assigned(text, low, seen, budget)
        found += commands.commanded(text, low, seen, budget)
        found += calls.called(text, low, seen, budget)
        found += blocks.blocked(text, low, seen, budget)
        found += phrases.phrased(text, low, seen, budget)
    return found


def _unfolded(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield what is found without what hides it; an address in an address is escaped twice."""
    layers: list[Unfolded] = []
    layer = unfolded(text)
    while layer and len(layers) < _LAYERS:
        layers.append(layer)
        for start, end, kind in _found(layer.text, budget):
            place = start, end
            for one in reversed(layers):
                place = one.span(*place)
            yield Secret(*place, kind)
        layer = unfolded(layer.text) if layer.begins_escapes else None


def _parted(text: str, found: list[Secret], budget: Budget) -> Iterator[Secret]:
    """Yield the tokens that a line end or a plus sign parts; a token that is whole does not go on in an indented line."""
    known: list[Secret] | None = None
    for whole, may_go_on in ((joined(text), True), (wrapped(text), False)):
        if not whole:
            continue
        budget.spend(len(text))
        known = apart([*found]) if known is None else known
        for start, end, kind in tokens.tokens(whole.text, budget):
            cut = whole.crosses(start, end)
            if cut is None:
                continue
            first, last = whole.span(start, end)
            before = bisect_right(known, last - 1, key=_start_of) - 1
            is_known = before >= 0 and known[before].end > first
            if not is_known or (may_go_on and is_mixed(whole.text[cut:end])):
                yield Secret(first, last, kind)


def _runs(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield the tokens in long runs of letters and digits, and the values in base64 in which there is a secret."""
    lines = list(runs(text))
    for start, end in lines:
        budget.spend(end - start)
        token = tokens.run_token(text, start, end)
        if token:
            yield token
        yield from _decoded(start, encoded(text, start, end), budget)
    for start, end in blocks_of(text, lines):
        budget.spend(end - start)
        yield from _decoded(start, encoded_block(text, start, end), budget)


def _decoded(start: int, inner: tuple[int, str] | None, budget: Budget) -> Iterator[Secret]:
    found = _found(inner[1], budget) if inner else []
    if inner and found:
        yield Secret(start, inner[0], found[0].kind)


def lower(text: str) -> str:
    """Return a text with the letters of ASCII in lower case, so that all places stay."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
