"""What is telling in a question: the words by which its answer may be found, without those that say nothing."""

from __future__ import annotations

from retold.archive.index.tokenizer import atoms, fold, is_dense, part_spans
from retold.query.forms import forms
from retold.query.language import Term

TYPE_CHECKING = False  # typing costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from retold.query.language import Clause, Query

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
