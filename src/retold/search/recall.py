"""Recall: sessions that may answer a question in plain words, by the keywords that they hold close together."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from functools import cache
from heapq import heappush, heappushpop, nlargest

from retold.archive.index.reader import (
    TABLES,
    Conditions,
    Index,
    WeightedQuery,
    count_documents,
    estimate_frequency,
    load_hits,
    load_occurrences,
    select_copied,
    select_with_words,
)
from retold.archive.index.tokenizer import find_part_spans, fold, is_dense, split_runs, tokenize
from retold.projects.matching import matches_project
from retold.search.engine import RESULTS_IN_DETAIL, ExcludedTerms, Search
from retold.search.query import Clause, Query, Term, match_expression
from retold.search.ranking import recency
from retold.search.results import HITS_PER_RESULT, load_hit, load_result, make_safe_snippet, select_text

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retold.archive.index.reader import IndexFile, IndexHit
    from retold.archive.store import Store
    from retold.search.filters import Filters
    from retold.search.results import Clean, MessageHit, SearchResult

    Occurrence = tuple[float, int, int]
    """The worth of a keyword in a document, the seq, and the document."""


_ENDINGS = ("ions", "ion", "ing", "ly", "ed", "es", "s", "e")
_VOWELS = "aeiou"
_SHORTEST, _STEM = 4, 3
"""Letters of the shortest word that has endings, and of the shortest stem."""
_WITH_ION = "st"
"""Letters before the ending `ion`: `compression`, `migration`."""
_RELATED = """
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


def word_forms(word: str) -> list[str]:
    """Return other forms that an English word may have, including forms that do not exist."""
    small = word.lower()
    forms = dict.fromkeys(_related_words().get(small, ()))
    if len(word) >= _SHORTEST and word.isascii() and word.isalpha():
        forms |= dict.fromkeys(_inflections(_stem(small)))
    forms.pop(small, None)
    return list(forms)


@cache
def _related_words() -> dict[str, list[str]]:
    """Return the groups of words that no rule derives, by each of their words."""
    groups = [group.split() for group in _RELATED.split(",")]
    return {word: group for group in groups for word in group}


def _stem(word: str) -> str:
    """Return the stem of a word: `stop` of `stopped`, `retry` of `retries`."""
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


def _inflections(stem: str) -> list[str]:
    """Return a stem with all endings that it may have."""
    if stem.endswith("y") and stem[-2:-1] not in _VOWELS:
        return [stem, f"{stem}ing", f"{stem[:-1]}ies", f"{stem[:-1]}ied"]
    forms = [stem + ending for ending in ("", "s", "e", "es", "ed", "ing", "er", "ly")]
    if stem[-1] in _WITH_ION:
        forms += [f"{stem}ion", f"{stem}ions"]
    if stem[-1] not in f"{_VOWELS}wxy" and stem[-2] in _VOWELS and stem[-3:-2] not in _VOWELS:
        forms += [stem + stem[-1] + ending for ending in ("ed", "ing")]
    return forms


MOST_WORDS = 24
"""Keywords of a question that are searched: more would make other searches wait."""
NAME_PART = 0.5
"""The weight of all parts of a name together."""
OTHER_FORM = 0.8
"""The weight of another form of a word."""
_APOSTROPHES = "'\u2019`"
_LONGEST_SUFFIX = 2
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
"""Question words and function words. Other frequent words have a low weight anyway, in any language."""


class Keywords:
    """A word of a question in all forms that are searched."""

    __slots__ = ("forms", "weight")

    def __init__(self, terms: Sequence[Term], others: Sequence[Term] = (), weight: float = 1.0) -> None:
        """Take the terms of the question, their other forms, and the weight of all of them."""
        forms = ((tuple(terms), 1.0), (tuple(others), OTHER_FORM))
        self.forms = tuple([(terms, share) for terms, share in forms if terms])
        """Terms with their share of the weight."""
        self.weight = weight


def extract_keywords(query: Query) -> list[Keywords]:
    """Return the keywords of a question, without function words and repetitions."""
    every = (one for clause in query.clauses if not clause.is_negated for one in _clause_keywords(clause))
    keywords: dict[tuple[str, ...], Keywords] = {}
    for one in every:
        keywords.setdefault(tuple([fold(term.text) for term in one.forms[0][0]]), one)
        if len(keywords) == MOST_WORDS:
            break
    return list(keywords.values())


def _clause_keywords(clause: Clause) -> Iterator[Keywords]:
    """Yield the keywords of a clause; alternatives and phrases are keywords as they are."""
    first, *others = clause.alternatives
    if others or first.kind != "word":
        yield Keywords(clause.alternatives)
    else:
        yield from _term_keywords(first)


def _term_keywords(term: Term) -> Iterator[Keywords]:
    """Yield the keywords of a text between spaces: words, names and their parts, pairs of characters of dense script."""
    words = split_runs(_strip_suffix(term.text))
    dense = [word for word in words if is_dense(word[0])]
    plain = [word for word in words if not is_dense(word[0])]
    if len(plain) > 1 and not dense:
        yield Keywords([Term("phrase", " ".join(plain), term.offset)])
    for word in plain:
        yield from _word_keywords(word, term, 1 / len(plain))
    for run in dense:
        pairs = [run[start : start + 2] for start in range(max(len(run) - 1, 1))]
        yield from (Keywords([Term("word", pair, term.offset)]) for pair in pairs)


def _word_keywords(word: str, term: Term, weight: float) -> Iterator[Keywords]:
    if fold(word) in _EMPTY_WORDS or (len(word) == 1 and weight < 1):
        return
    others = [Term("word", other, term.offset) for other in word_forms(word)]
    yield Keywords([Term("word", word, term.offset)], others, weight)
    parts = [word[start:end] for start, end in find_part_spans(word) if end - start > 1]
    for part in parts:
        if fold(part) not in _EMPTY_WORDS:
            yield Keywords([Term("word", part, term.offset)], weight=weight * NAME_PART / len(parts))


def _strip_suffix(text: str) -> str:
    """Return a word without a suffix after an apostrophe: `what's`, `Anna's`, `didn't`."""
    for apostrophe in _APOSTROPHES:
        head, _, tail = text.rpartition(apostrophe)
        if head and len("".join(split_runs(tail))) <= _LONGEST_SUFFIX:
            text = head
    return text


LONGEST_TEXT = 20_000
"""Characters of a text in which keywords are searched."""


class KeywordCoverage:
    """Scores texts by the keywords that they contain."""

    def __init__(self, words: Sequence[Keywords]) -> None:
        self._words = [
            (one.weight, [set(tokenize(term.text)) for terms, _ in one.forms for term in terms])
            for one in words
        ]

    def score(self, *texts: str | None) -> float:
        """Return the weight of all keywords in texts, each counted once."""
        tokens = {token for text in texts if text for token in tokenize(text[:LONGEST_TEXT])}
        return sum(weight for weight, forms in self._words if any(form <= tokens for form in forms if form))


COUNTED = 1_000
"""Documents of a file up to which they are counted: for more frequent words, an estimate is enough."""
_LEAST_RARITY = 1e-6
"""The rarity that FTS5 gives to a word in more than half of all documents."""


class Form:
    """A word of the question, or all its other forms together, as an expression for each table."""

    __slots__ = ("matches", "number", "share", "terms", "word")

    def __init__(self, number: int, word: int, terms: tuple[Term, ...], share: float) -> None:
        self.number, self.word, self.terms, self.share = number, word, terms, share
        query = Query((Clause(terms, is_negated=False),), ())
        expressions = {table: match_expression(query, has_positions=table == "said") for table in TABLES}
        self.matches = {table: match for table, match in expressions.items() if match is not None}


class TermWeights:
    """The weights of the words of a question, by the frequencies of their forms in all files of the index."""

    def __init__(self, index: Index, words: Sequence[Keywords]) -> None:
        pairs = [
            (number, terms, share * word.weight)
            for number, word in enumerate(words)
            for terms, share in word.forms
        ]
        forms = [Form(number, *pair) for number, pair in enumerate(pairs)]
        self._counts = dict(index.ask_all(lambda file: [(file.path, _TermCounts(file, forms))]))
        files = list(self._counts.values())
        self.forms = [form for form in forms if any([counts.has(form) for counts in files])]
        """The forms that occur anywhere."""
        self._weights = {table: self._word_weights(table, len(words)) for table in TABLES}

    def _word_weights(self, table: str, words: int) -> list[float]:
        files = self._counts.values()
        frequencies = [0] * words
        for form in self.forms:
            frequencies[form.word] += sum([counts.frequency(table, form) for counts in files])
        documents = sum([counts.documents[table] for counts in files])
        return [math.log(1 + documents / (frequency + 0.5)) for frequency in frequencies]

    def weight(self, table: str, form: Form) -> float:
        """Return the weight of a form, which depends on the frequency of all forms of the word."""
        return form.share * self._weights[table][form.word]

    def frequency(self, file: IndexFile, table: str, form: Form) -> int:
        """Return the number of documents of a file with a form, estimated if it is high."""
        return self._counts[file.path].frequency(table, form)

    def rarity(self, file: IndexFile, form: Form) -> float:
        """Return the inverse document frequency that FTS5 uses for a form in its scores."""
        counts = self._counts[file.path]
        frequency = counts.frequency("said", form)
        return max(math.log((counts.documents["said"] - frequency + 0.5) / (frequency + 0.5)), _LEAST_RARITY)

    def highlight_query(self) -> Query:
        """Return the query for highlights in texts."""
        terms = tuple([term for form in self.forms for term in form.terms])
        return Query((Clause(terms, is_negated=False),), ())


class _TermCounts:
    """The numbers of documents with each form in one file of the index."""

    __slots__ = ("_frequencies", "documents")

    def __init__(self, file: IndexFile, forms: Sequence[Form]) -> None:
        self.documents = {table: count_documents(file, table) for table in TABLES}
        """The number of all documents."""
        self._frequencies = {
            (table, form.number): estimate_frequency(file, table, match, COUNTED)
            for table in TABLES
            for form in forms
            if (match := form.matches.get(table)) is not None
        }

    def frequency(self, table: str, form: Form) -> int:
        return self._frequencies.get((table, form.number), 0)

    def has(self, form: Form) -> bool:
        return any([self.frequency(table, form) for table in TABLES])


NEAR = 4
"""Entries of a timeline after which a word is worth half as much as in the same entry."""
ANYWHERE = 0.2
"""The least share of the worth of a word, at any distance in the same session."""
AGAIN, TIMES = 0.2, 2
"""The share that each repetition of a word near by adds, and the number of repetitions that count."""
MOST_OCCURRENCES = 5
"""Occurrences of a word that are considered: those with the highest worth."""


class ProximityScore:
    """The score of a session: for each word of the question, its occurrences with their worth."""

    __slots__ = ("occurrences",)

    def __init__(self) -> None:
        self.occurrences: dict[int, dict[int, Occurrence]] = {}
        """By word and document."""

    def add(self, word: int, occurrence: Occurrence) -> None:
        """Add an occurrence of a word; of several forms in one document, the one with the highest worth counts."""
        documents = self.occurrences.setdefault(word, {})
        known = documents.get(occurrence[2])
        if known is None or known[0] < occurrence[0]:
            documents[occurrence[2]] = occurrence

    @property
    def max_score(self) -> float:
        """The score if all words were in the same entry."""
        best = [max(documents.values())[0] for documents in self.occurrences.values()]
        return sum(best) * (1 + AGAIN * TIMES)

    def score(self) -> tuple[float, list[int]]:
        """Return the score, and the documents: the one in the centre of the words, and those with the other words."""
        by_word = {
            word: nlargest(MOST_OCCURRENCES, documents.values())
            for word, documents in self.occurrences.items()
        }
        anchors = {(seq, document) for places in by_word.values() for _, seq, document in places}
        best, seq, document = max(
            [(self._score_around(seq, one, by_word), -seq, one) for seq, one in anchors]
        )
        missing = [places for word, places in by_word.items() if document not in self.occurrences[word]]
        return best, [document, *_nearest(-seq, missing)]

    def _score_around(self, anchor: int, document: int, by_word: Mapping[int, Sequence[Occurrence]]) -> float:
        """Return the worth of all words, reduced by their distance from a document."""
        total = 0.0
        for word, places in by_word.items():
            worths = sorted([worth * _share(seq - anchor) for worth, seq, _ in places], reverse=True)
            # A frequent word may be in the document without being among the occurrences that are considered.
            here = self.occurrences[word].get(document, (0.0,))[0]
            total += max(worths[0], here) + AGAIN * sum(worths[1 : 1 + TIMES])
        return total


def _share(distance: int) -> float:
    return max(ANYWHERE, NEAR / (NEAR + abs(distance)))


def _nearest(anchor: int, missing: Sequence[Sequence[Occurrence]]) -> list[int]:
    """Return the documents with words that another lacks, each the nearest to it, the highest worth first."""
    nearest = [max(places, key=lambda one: one[0] * _share(one[1] - anchor)) for places in missing]
    return list(dict.fromkeys(document for _, _, document in sorted(nearest, reverse=True)))


def select_best(scores: Mapping[int, ProximityScore], most: int) -> list[tuple[float, int, list[int]]]:
    """Return the best scores with the sessions and their documents; scores that cannot be among them are not computed."""
    best: list[tuple[float, int, list[int]]] = []
    for bound, session in sorted([(one.max_score, session) for session, one in scores.items()], reverse=True):
        if len(best) >= most and best[0][0] >= bound:
            break
        score, documents = scores[session].score()
        (heappush if len(best) < most else heappushpop)(best, (score, session, documents))
    return sorted(best, reverse=True)


SELECTIVE = {"said": 1_000, "output": 300}
"""Documents of a file up to which a form is selective: it gives candidates, and others only add to their scores."""
MOST_BEST = 300
"""Documents that are loaded by their scores if the selective forms have low weights."""
LOW_RATIO = 2
"""How many times the weight of the other forms the selective ones must have to be enough."""
NEGLIGIBLE_RATIO = 8
"""How many times the weight of a form the selective ones must have for the form to be ignored."""
HUMAN, AGENT = 4.0, 1.0
"""The weights of a word in the text of a person and in that of the agent."""
SHARES = {"said": 1.0, "output": 0.4}
"""The weights of a word in messages and in tool output."""
_TYPICAL = 0.5
"""The worth of a form in a document whose score is unknown."""


class KeywordMatches:
    """The documents of one file of the index that hold keywords, and the scores of their sessions."""

    def __init__(self, file: IndexFile, weights: TermWeights, conditions: Conditions) -> None:
        self._file, self._weights, self._conditions = file, weights, conditions
        self.scores: defaultdict[int, ProximityScore] = defaultdict(ProximityScore)
        """By the entry of the session."""
        self._documents: dict[int, tuple[int, int]] = {}
        """The entry and the seq of each candidate document."""
        frequent, highest = [], 0.0
        for table in TABLES:
            for form in weights.forms:
                if not weights.frequency(file, table, form):
                    continue
                if self._is_selective(table, form):
                    highest = max(highest, weights.weight(table, form) if self._load(table, form) else 0.0)
                elif table == "said":
                    frequent.append(form)
        if LOW_RATIO * max([weights.weight("said", form) for form in frequent], default=0.0) > highest:
            self._load_best(frequent)
        for form in frequent:
            if NEGLIGIBLE_RATIO * weights.weight("said", form) > highest:
                self._add_frequent(form)

    def _is_selective(self, table: str, form: Form) -> bool:
        """Return whether a form is rare, or occurs in tool output only."""
        is_rare = self._weights.frequency(self._file, table, form) <= SELECTIVE[table]
        return is_rare or not self._weights.frequency(self._file, "said", form)

    def _load(self, table: str, form: Form) -> bool:
        """Load the documents with a form, at most the latest ones; return whether any meet the conditions."""
        weight = self._weights.weight(table, form) * SHARES[table]
        rarity = self._weights.rarity(self._file, form) if table == "said" else 1.0
        query = WeightedQuery(table, form.matches[table], (HUMAN, AGENT))
        rows = list(load_occurrences(self._file, query, self._conditions, SELECTIVE[table]))
        for entry_id, document, seq, worth in rows:
            self._documents[document] = entry_id, seq
            frequency = worth / rarity  # relative to the length of the document, as in BM25
            self.scores[entry_id].add(form.word, (weight * frequency / (frequency + 1), seq, document))
        return bool(rows)

    def _load_best(self, forms: list[Form]) -> None:
        """Load the documents with the best scores: each word is frequent, but not all of them together."""
        match = " OR ".join([form.matches["said"] for form in forms])
        query = WeightedQuery("said", match, (HUMAN, AGENT), is_best=True)
        for entry_id, document, seq, _ in load_occurrences(self._file, query, self._conditions, MOST_BEST):
            self._documents[document] = entry_id, seq

    def _add_frequent(self, form: Form) -> None:
        """Add the occurrences of a frequent form in the candidate documents."""
        worth = self._weights.weight("said", form) * _TYPICAL
        for document in select_with_words(self._file, form.matches["said"], self._documents):
            entry_id, seq = self._documents[document]
            self.scores[entry_id].add(form.word, (worth, seq, document))


RECENT = 0.03
"""How much more a session of today weighs than one of long ago: it decides between equal scores."""
COPY = 0.2
"""How much less a session weighs whose documents are copies from another, as the beginning of a fork."""


class Recall:
    """A question in plain words; fields, phrases, -not and OR have the same meaning as in a search."""

    def __init__(
        self,
        store: Store,
        query: Query,
        filters: Filters,
        index: Index | None = None,
        clean: Clean | None = None,
    ) -> None:
        self._store, self._query, self._filters, self._clean = store, query, filters, clean
        self._index = index or Index(store, matches_project)
        self._excluded = ExcludedTerms(self._index, query)
        self._conditions = Conditions([*filters.sessions, *self._excluded.conditions()], filters.messages)
        self.words = extract_keywords(query)
        """The keywords; without any, the newest sessions are the results."""

    def find(self, limit: int) -> Iterator[SearchResult]:
        """Yield the best results, the best first."""
        if not self.words:
            excluded = tuple([clause for clause in self._query.clauses if clause.is_negated])
            query = Query(excluded, self._query.fields)
            yield from Search(self._store, query, self._filters, self._index, self._clean).find(limit)
            return
        weights = TermWeights(self._index, self.words)
        matches = self._index.ask_all(lambda file: self._find_in_file(file, weights, limit))
        matches.sort(key=lambda match: -match[0])
        best = matches[0][0] if matches else 1.0
        highlights = weights.highlight_query()
        for number, (score, documents) in enumerate(matches[:limit]):
            most = HITS_PER_RESULT if number < RESULTS_IN_DETAIL else 1
            hits = list(self._load_hits(documents[:most], highlights))
            result = load_result(self._store, documents[0].session, score / best, hits)
            if result is not None:
                yield result

    def _find_in_file(
        self, file: IndexFile, weights: TermWeights, limit: int
    ) -> list[tuple[float, list[IndexHit]]]:
        """Return the best sessions of one file of the index, each with its score and documents."""
        scores = KeywordMatches(file, weights, self._conditions).scores
        best = select_best(scores, limit + 1 if self._excluded.is_exact else len(scores))
        ids = [document for *_, documents in best for document in documents[:HITS_PER_RESULT]]
        hits, copied, now = load_hits(file, ids), select_copied(file, ids), time.time()
        matches = []
        for score, _, documents in best:
            shown = documents[:HITS_PER_RESULT]
            found = [hits[document] for document in shown if document in hits]
            if found and not self._excluded.is_in(found[0]):
                copies = sum([document in copied for document in shown]) / len(shown)
                factor = (1 + RECENT * recency(found[0].ended_at, now)) * (1 - COPY * copies)
                matches.append((score * factor, found))
        return matches

    def _load_hits(self, documents: Sequence[IndexHit], highlights: Query) -> Iterator[MessageHit]:
        for hit in documents:
            text, ranges = select_text(hit, highlights)
            yield load_hit(self._store, hit, make_safe_snippet(text, ranges, highlights, self._clean))
