"""What was decided in a session: sentences that say so, plans that were approved, and what summaries keep of them.

Sentences are found by a few turns of phrase, in English. Rather one decision too few than one that is none: questions, offers
and what only might be are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from retold.insights.text import PlacedEntry, TurnPlace, clipped, paragraphs, placed, sentences, words_said
from retold.model.session import Context, Entry, Event, Message, ToolCall, words_of

Speaker = Literal["person", "agent"]
Source = Literal["said", "accepted", "plan", "summary"]
SENTENCE, CONTEXT = 300, 600
"""Characters of a decision, and of the paragraph that it stands in."""
_SHORTEST, _LONGEST = 3, 60
"""Words of a sentence that can be one."""
_LOOKED_AT = 1_000
_NEAR = 4
"""As many of the agent's last sentences may hold the proposal that somebody says yes to."""
_CHOOSE = (
    r"(?:use|go with|keep|stick (?:with|to)|stay with|switch to|move to|drop|avoid|skip|leave|store|wait|postpone|call it"
    r"|do it|make it|not)\b"
)
_CHOSEN = r"(?:use|used|go with|went with|gone with|keep|kept|choose|chose|switch to|switched to|pick|picked|stick with|prefer)"
_FOR_A_REASON = r"(?:because|since|so that|rather than|instead of|as it|as they)"
_ANYBODY = (
    r"^(?:key |final |design )?deci(?:sion|ded)(?: made)?\s*[:\u2013\u2014]\s*\S",
    r"\b(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|opted|chose|concluded)\b(?! (?:whether|if|how)\b)",
    r"\bthe decision (?:is|was)\b",
)
_OPENING = r"^(?:actually[,.]? |ok(?:ay)?[,.!]? |yes[,.!]? |no[,.:!]? |and |but |please |then )*"
_BY_PERSON = (
    *_ANYBODY,
    rf"\blet'?s (?:just |rather |instead |please )?{_CHOOSE}(?! a day)",
    r"\bwe(?:'ll| will|'re| are| should| want to)? (?:go|going|stick|sticking|stay|staying) with\b",
    r"\b(?:from now on|going forward)\b",
    rf"{_OPENING}(?:always|never) (?!mind\b)\w+",
    rf"{_OPENING}(?:do not|don't|stop) .{{1,80}}\b(?:instead|rather)\b",
    rf"{_OPENING}(?:let's try|use|take|choose|keep|make|put|move|store|name|call) .{{1,80}}\b(?:instead(?: of)?|rather than)\b",
    rf"{_OPENING}prefer .{{1,80}}\b(?:over|to)\b",
    rf"{_OPENING}(?:use|take) [^,.]{{1,40}},? not\b",
    r"^(?:agreed|deal|settled)[,.:!]? \w+",
    r"\bwe (?:always|never) (?:use|write|put|call|commit|deploy|store|keep|test|merge|push)\b",
)
_BY_AGENT = (
    *_ANYBODY,
    rf"\bi(?:'ll| will|'m going to| am going to|'ve| have)? {_CHOSEN}\b.{{1,120}}\b{_FOR_A_REASON}\b",
    r"\bas (?:we )?agreed\b",
    r"^agreed[,.:] \w+",
)
_HEADING = re.compile(
    r"^[\s#*\d.)]*(?:key |design |technical |architectural )?decisions(?: made| taken)?(?: so far)?[\s:*]*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(.+)$")
_UNSURE = re.compile(
    r"[?\uff1f]$|\b(?:maybe|perhaps|should we|shall|might|could we|would you|do you want|if you (?:like|want|prefer))\b|…$",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"\b(?:i would|i'd|i suggest|i propose|i recommend|my (?:suggestion|proposal|recommendation) is)\b(?! (?:be|like|need|have)\b)",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^(?:yes|yep|yeah|ok|okay|agreed|deal|sure|do (?:it|that|so)|go ahead|sounds good|good(?: idea)?|fine|right|exactly|please do)\b(?! but\b)",
    re.IGNORECASE,
)
_PLANNED = "exitplanmode"


def _pattern(turns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{turn})" for turn in turns), re.IGNORECASE)


_SAYS: dict[Speaker, re.Pattern[str]] = {"person": _pattern(_BY_PERSON), "agent": _pattern(_BY_AGENT)}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was decided."""

    place: TurnPlace
    by: Speaker
    source: Source
    """In words, as a proposal of the agent or a plan that was approved, or as a summary of what was said before tells it."""
    text: str
    """The sentence, that of the proposal, or the first line of the plan."""
    context: str
    """The paragraph around it, the words that accepted it, or the plan, as far as there is room."""
    answers: str | None = None
    """What the agent had said last, where a person decided."""


class Decisions:
    """What was decided so far, each thing once."""

    def __init__(self) -> None:
        self._found: dict[str, Decision] = {}
        self._said: tuple[str, ...] = ()
        """The sentences that the agent said last."""

    def take(self, one: PlacedEntry) -> None:
        """Take in the next entry; what was taken back decides nothing."""
        if one.is_taken_back:
            return
        accepted = _accepted(one, self._said)
        for decision in [*accepted, *_decisions(one)]:
            is_said = decision.by == "person" and decision.source == "said"
            if is_said and accepted and _YES.match(decision.text):
                continue  # the proposal says it better
            answers = clipped(self._said[-1], SENTENCE) if is_said and self._said else None
            self._found.setdefault(
                decision.text.casefold(), msgspec.structs.replace(decision, answers=answers)
            )
        if isinstance(one.entry, Message) and one.entry.role == "assistant":
            self._said = _sentences(words_said(one.entry)) or self._said

    def found(self) -> tuple[Decision, ...]:
        """Return them in their order."""
        return tuple(self._found.values())


def decisions(entries: Iterable[Entry]) -> tuple[Decision, ...]:
    """Return what was decided in a timeline, in its order."""
    found = Decisions()
    for one in placed(entries):
        found.take(one)
    return found.found()


def _decisions(one: PlacedEntry) -> Iterator[Decision]:
    entry = one.entry
    if isinstance(entry, Event):
        if entry.kind == "compaction":
            yield from _in_words(one.place, "agent", "summary", entry.text)
        return
    spoken = words_of(entry)
    if spoken is not None:
        yield from _in_words(one.place, "person", "said", spoken)
    elif entry.role == "assistant":
        yield from _in_words(one.place, "agent", "said", words_said(entry))
    yield from _in_parts(one.place, entry)


def _in_parts(place: TurnPlace, message: Message) -> Iterator[Decision]:
    """Yield what stands in summaries, and plans that were approved."""
    for part in message.parts:
        if isinstance(part, Context) and part.kind == "snapshot":
            yield from _in_words(place, "agent", "summary", part.text or "")
        elif isinstance(part, ToolCall) and part.status == "success" and _is_plan(part):
            plan = part.arguments.get("plan")
            if type(plan) is str and plan.strip():
                yield _plan(place, plan)


def _accepted(one: PlacedEntry, said: Sequence[str]) -> list[Decision]:
    """Return what the agent proposed last, where a person says yes to it."""
    words = words_of(one.entry)
    proposed = [text for text in said[-_NEAR:] if _PROPOSED.search(text) and _is_told(text)]
    if words is None or not proposed or not _YES.match(words):
        return []
    text = clipped(proposed[-1], SENTENCE)
    return [
        Decision(place=one.place, by="person", source="accepted", text=text, context=clipped(words, CONTEXT))
    ]


def _sentences(words: str) -> tuple[str, ...]:
    return tuple(sentence for paragraph in paragraphs(words) for sentence in sentences(paragraph))


def _is_plan(call: ToolCall) -> bool:
    return call.canonical == "planning" and call.name.replace("_", "").casefold() == _PLANNED


def _plan(place: TurnPlace, plan: str) -> Decision:
    title = next(line for line in plan.splitlines() if line.strip()).lstrip("# ").strip() or plan.strip()
    return Decision(
        place=place,
        by="person",
        source="plan",
        text=clipped(title, SENTENCE),
        context=clipped(plan, CONTEXT),
    )


def _in_words(place: TurnPlace, by: Speaker, source: Source, text: str) -> Iterator[Decision]:
    is_list = False
    for paragraph in paragraphs(text):
        for sentence, is_listed in _told(paragraph, is_list=is_list):
            if is_listed or _is_decision(sentence, by):
                yield Decision(
                    place=place,
                    by=by,
                    source=source,
                    text=clipped(sentence, SENTENCE),
                    context=clipped(paragraph, CONTEXT),
                )
        is_list = bool(_HEADING.match(paragraph.splitlines()[-1]))


def _told(paragraph: str, *, is_list: bool) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a paragraph, and whether they stand in a list of decisions, which a heading begins."""
    lines = paragraph.splitlines()
    begins = next((number for number, line in enumerate(lines) if _HEADING.match(line)), None)
    listed = lines if is_list else lines[begins + 1 :] if begins is not None else []
    bullets = [match[1] for line in listed if (match := _BULLET.match(line))]
    for bullet in bullets:
        yield " ".join(sentences(bullet)), True
    if not bullets:
        yield from ((sentence, False) for sentence in sentences(paragraph))


def _is_decision(sentence: str, by: Speaker) -> bool:
    return _is_told(sentence) and _SAYS[by].search(sentence.replace("\u2019", "'")) is not None


def _is_told(sentence: str) -> bool:
    """Tell whether a sentence is of a length that can be told, and sure of what it says."""
    is_short = len(sentence) <= _LOOKED_AT and _SHORTEST <= len(sentence.split()) <= _LONGEST
    return is_short and not _UNSURE.search(sentence)
