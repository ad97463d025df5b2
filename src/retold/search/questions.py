"""What is telling in a question: the words by which its answer may be found, without those that say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from retold.archive.index.tokenizer import atoms, fold, is_dense, part_spans, tokens
from retold.search.query import Term

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.search.query import Clause, Query


_ENDINGS = ("ions", "ion", "ing", "ly", "ed", "es", "s", "e")
_VOWELS = "aeiou"
_SHORTEST, _STEM = 4, 3
"""Letters of a word that has endings, and of what is left of it without them."""
_WITH_ION = "st"
"""Letters behind which `ion` makes what is done: `compression`, `migration`."""
_KIN = """
break broke broken, write wrote written, run ran, lose lost, find found, build built, send sent, begin began begun, make made,
take took taken, give gave given, choose chose chosen, freeze froze frozen, throw threw thrown, fall fell fallen, grow grew grown,
hold held, lead led, leave left, pay paid, speak spoke spoken, spend spent, stick stuck, sell sold, keep kept, wake woke woken,
draw drew drawn, drive drove driven, forget forgot forgotten, hang hung, hide hid hidden, shrink shrank shrunk, think thought,
steal stole stolen, tear tore torn, bring brought, catch caught, teach taught, buy bought, sleep slept, mean meant, bind bound,
db database databases, config configuration configure, repo repository repositories, docs documentation, env environment,
auth authentication authenticate, prod production, deps dependency dependencies, k8s kubernetes, postgres postgresql,
dir directory directories, cmd command commands, msg message messages, param parameter parameters, args arguments,
perf performance, regex regexp, img image images, pkg package packages, lib library libraries, func function functions,
var variable variables, app application, admin administrator, info information, spec specification, sync synchronize
"""


def forms(word: str) -> list[str]:
    """Return other forms that an English word may have, none of which needs to be one."""
    small = word.lower()
    found = dict.fromkeys(_kin().get(small, ()))
    if len(word) >= _SHORTEST and word.isascii() and word.isalpha():
        found |= dict.fromkeys(_grown(_stem(small)))
    found.pop(small, None)
    return list(found)


@cache
def _kin() -> dict[str, list[str]]:
    """Return the words that no rule leads to, by each of those they belong to."""
    groups = [group.split() for group in _KIN.split(",")]
    return {word: group for group in groups for word in group}


def _stem(word: str) -> str:
    """Return what a word may have grown from: `stopped` from `stop`, `retries` from `retry`."""
    if word.endswith(("ies", "ied")) and len(word) > _STEM + 1:
        return f"{word[:-3]}y"
    if word.endswith(("ss", "us", "is")):
        return word
    ending = next((one for one in _ENDINGS if word.endswith(one)), "")
    stem = word.removesuffix(ending)
    if ending.startswith("ion") and stem[-1:] not in _WITH_ION:
        stem = word.removesuffix("s")
    if len(stem) < _STEM:
        return word
    is_doubled = ending in {"ing", "ed"} and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    return stem[:-1] if is_doubled else stem


def _grown(stem: str) -> list[str]:
    """Return a stem with the endings that go with it."""
    if stem.endswith("y") and stem[-2:-1] not in _VOWELS:
        return [stem, f"{stem}ing", f"{stem[:-1]}ies", f"{stem[:-1]}ied"]
    grown = [stem + ending for ending in ("", "s", "e", "es", "ed", "ing", "er", "ly")]
    if stem[-1] in _WITH_ION:
        grown += [f"{stem}ion", f"{stem}ions"]
    if stem[-1] not in f"{_VOWELS}wxy" and stem[-2] in _VOWELS and stem[-3:-2] not in _VOWELS:
        grown += [stem + stem[-1] + ending for ending in ("ed", "ing")]
    return grown


MOST_WORDS = 24
"""So many are looked for; others would have to wait for more."""
PART = 0.5
"""What all parts of a name with humps weigh together."""
OTHER = 0.8
"""What another form of a word weighs."""
_APOSTROPHES = "'\u2019`"
_LONGEST_SUFFIX = 2
# Words that ask and join. What else is everywhere weighs little anyway, in any language.
_EMPTY = """
a about again ago all already also am an and any anybody anything are aren as at be because been before being
but by can cannot could couldn d did didn do does doesn doing don done each earlier else ever every for from get
gets getting going got had hadn has hasn have haven having he her here hers him his how i if in into is isn it
its itself just know let like ll m may maybe me mean might mine more most much must my need no nor not now of oh
ok on once only or other our ours out own please re really recall remember s same say see she should shouldn so
some somebody something somewhere such t tell than thank thanks that the their them then there these they thing
things this those though to too until up us ve very want was wasn way we well were weren what when where which
while who whom whose why will with without won would wouldn yes yet you your yours
"""
_EMPTY_WORDS = frozenset(_EMPTY.split())


class Keywords:
    """One thing to be found, in every form that will do."""

    __slots__ = ("forms", "weight")

    def __init__(self, terms: Sequence[Term], others: Sequence[Term] = (), weight: float = 1.0) -> None:
        """Take what was asked for, what it may be as well, and what all of it weighs."""
        forms = ((tuple(terms), 1.0), (tuple(others), OTHER))
        self.forms = tuple([(found, share) for found, share in forms if found])
        """Each with its share of the weight."""
        self.weight = weight


def telling(query: Query) -> list[Keywords]:
    """Return what is telling in a question, as far as it is looked for."""
    every = (one for clause in query.clauses if not clause.is_negated for one in _of_clause(clause))
    found: dict[tuple[str, ...], Keywords] = {}
    for one in every:
        found.setdefault(tuple([fold(term.text) for term in one.forms[0][0]]), one)
        if len(found) == MOST_WORDS:
            break
    return list(found.values())


def _of_clause(clause: Clause) -> Iterator[Keywords]:
    """Yield what is telling in something that was asked for: in a phrase nothing is empty."""
    first, *others = clause.alternatives
    if others or first.kind != "word":
        yield Keywords(clause.alternatives)
    else:
        yield from _of_word(first)


def _of_word(term: Term) -> Iterator[Keywords]:
    """Yield what is telling in something between spaces: a word, a name and its parts, a run of dense script."""
    words = atoms(_bare(term.text))
    dense = [word for word in words if is_dense(word[0])]
    plain = [word for word in words if not is_dense(word[0])]
    if len(plain) > 1 and not dense:
        yield Keywords([_term(" ".join(plain), term, "phrase")])
    for word in plain:
        yield from _of_plain(word, term, 1 / len(plain))
    for run in dense:
        pairs = [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
        yield from (Keywords([_term(pair, term)]) for pair in pairs)


def _of_plain(word: str, term: Term, weight: float) -> Iterator[Keywords]:
    if fold(word) in _EMPTY_WORDS or (len(word) == 1 and weight < 1):
        return
    yield Keywords([_term(word, term)], [_term(other, term) for other in forms(word)], weight)
    parts = [word[start:end] for start, end in part_spans(word) if end - start > 1]
    for part in parts:
        if fold(part) not in _EMPTY_WORDS:
            yield Keywords([_term(part, term)], weight=weight * PART / len(parts))


def _bare(text: str) -> str:
    """Return a word without what an apostrophe adds: `what's`, `Anna's`, `didn't`."""
    for sign in _APOSTROPHES:
        head, _, tail = text.rpartition(sign)
        if head and len("".join(atoms(tail))) <= _LONGEST_SUFFIX:
            text = head
    return text


def _term(text: str, term: Term, kind: str = "word") -> Term:
    return Term(kind, text, term.place)


LOOKED_AT = 20_000


class Fit:
    """A question, held against texts."""

    def __init__(self, words: Sequence[Keywords]) -> None:
        self._words = [
            (one.weight, [set(tokens(term.text)) for terms, _ in one.forms for term in terms])
            for one in words
        ]

    def of(self, *texts: str | None) -> float:
        """Return the weight of all that is found in texts, of each thing once."""
        there = {token for text in texts if text for token in tokens(text[:LOOKED_AT])}
        return sum(weight for weight, forms in self._words if any(form <= there for form in forms if form))
