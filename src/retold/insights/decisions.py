"""Decisions of a session: sentences that state one, accepted proposals, approved plans, and decisions in summaries.

Sentences are found by a few English phrases. A missed decision is better than a wrong one: questions, offers and
possibilities are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from retold.insights.text import (
    PlacedEntry,
    TurnPlace,
    clip,
    message_text,
    paragraphs,
    sentences,
)
from retold.model.session import Context, Event, Message, ToolCall, prompt_words

Speaker = Literal["person", "agent"]
DecisionSource = Literal["said", "accepted", "plan", "summary"]
SENTENCE, CONTEXT = 300, 600
"""Characters of a decision, and of the paragraph around it."""
_SHORTEST, _LONGEST = 3, 60
"""Words of the shortest and the longest sentence that can be a decision."""
_LONGEST_SENTENCE = 1_000
_NEAR = 4
"""The agent's last sentences among which an accepted proposal is looked for."""
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


_PHRASES: dict[Speaker, re.Pattern[str]] = {"person": _pattern(_BY_PERSON), "agent": _pattern(_BY_AGENT)}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision."""

    place: TurnPlace
    by: Speaker
    source: DecisionSource
    """A sentence, an accepted proposal of the agent, an approved plan, or a summary of earlier messages."""
    text: str
    """The sentence, the proposal, or the first line of the plan."""
    context: str
    """The paragraph around it, the words that accepted it, or the plan, clipped."""
    answers: str | None = None
    """The agent's last sentence before a decision of a person."""


class DecisionCollector:
    """Collects the decisions of a session, each once."""

    def __init__(self) -> None:
        self._decisions: dict[str, Decision] = {}
        self._last_sentences: tuple[str, ...] = ()
        """The sentences of the agent's last message with words."""

    def add(self, one: PlacedEntry) -> None:
        """Add the next entry; a rewound one decides nothing."""
        if one.is_rewound:
            return
        accepted = _accepted_proposal(one, self._last_sentences)
        for decision in [*accepted, *_decisions(one)]:
            is_said = decision.by == "person" and decision.source == "said"
            if is_said and accepted and _YES.match(decision.text):
                continue  # the proposal has the content
            has_answer = is_said and self._last_sentences
            answers = clip(self._last_sentences[-1], SENTENCE) if has_answer else None
            self._decisions.setdefault(
                decision.text.casefold(), msgspec.structs.replace(decision, answers=answers)
            )
        if isinstance(one.entry, Message) and one.entry.role == "assistant":
            self._last_sentences = _sentences(message_text(one.entry)) or self._last_sentences

    def decisions(self) -> tuple[Decision, ...]:
        """Return the decisions in order."""
        return tuple(self._decisions.values())


def _decisions(one: PlacedEntry) -> Iterator[Decision]:
    entry = one.entry
    if isinstance(entry, Event):
        if entry.kind == "compaction":
            yield from _find_in_text(one.place, "agent", "summary", entry.text)
        return
    spoken = prompt_words(entry)
    if spoken is not None:
        yield from _find_in_text(one.place, "person", "said", spoken)
    elif entry.role == "assistant":
        yield from _find_in_text(one.place, "agent", "said", message_text(entry))
    yield from _find_in_parts(one.place, entry)


def _find_in_parts(place: TurnPlace, message: Message) -> Iterator[Decision]:
    """Yield the decisions in summaries, and approved plans."""
    for part in message.parts:
        if isinstance(part, Context) and part.kind == "snapshot":
            yield from _find_in_text(place, "agent", "summary", part.text or "")
        elif isinstance(part, ToolCall) and part.status == "success" and _is_plan(part):
            plan = part.arguments.get("plan")
            if type(plan) is str and plan.strip():
                yield _plan_decision(place, plan)


def _accepted_proposal(one: PlacedEntry, last_sentences: Sequence[str]) -> list[Decision]:
    """Return the agent's last proposal if a person says yes to it."""
    words = prompt_words(one.entry)
    proposed = [text for text in last_sentences[-_NEAR:] if _PROPOSED.search(text) and _can_be_decision(text)]
    if words is None or not proposed or not _YES.match(words):
        return []
    text = clip(proposed[-1], SENTENCE)
    return [
        Decision(place=one.place, by="person", source="accepted", text=text, context=clip(words, CONTEXT))
    ]


def _sentences(words: str) -> tuple[str, ...]:
    return tuple(sentence for paragraph in paragraphs(words) for sentence in sentences(paragraph))


def _is_plan(call: ToolCall) -> bool:
    return call.canonical == "planning" and call.name.replace("_", "").casefold() == _PLANNED


def _plan_decision(place: TurnPlace, plan: str) -> Decision:
    title = next(line for line in plan.splitlines() if line.strip()).lstrip("# ").strip() or plan.strip()
    return Decision(
        place=place,
        by="person",
        source="plan",
        text=clip(title, SENTENCE),
        context=clip(plan, CONTEXT),
    )


def _find_in_text(place: TurnPlace, by: Speaker, source: DecisionSource, text: str) -> Iterator[Decision]:
    is_list = False
    for paragraph in paragraphs(text):
        for sentence, is_listed in _split_paragraph(paragraph, is_list=is_list):
            if is_listed or _is_decision(sentence, by):
                yield Decision(
                    place=place,
                    by=by,
                    source=source,
                    text=clip(sentence, SENTENCE),
                    context=clip(paragraph, CONTEXT),
                )
        is_list = bool(_HEADING.match(paragraph.splitlines()[-1]))


def _split_paragraph(paragraph: str, *, is_list: bool) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a paragraph, and whether each is an item under a heading such as "Decisions"."""
    lines = paragraph.splitlines()
    begins = next((number for number, line in enumerate(lines) if _HEADING.match(line)), None)
    listed = lines if is_list else lines[begins + 1 :] if begins is not None else []
    bullets = [match[1] for line in listed if (match := _BULLET.match(line))]
    for bullet in bullets:
        yield " ".join(sentences(bullet)), True
    if not bullets:
        yield from ((sentence, False) for sentence in sentences(paragraph))


def _is_decision(sentence: str, by: Speaker) -> bool:
    return _can_be_decision(sentence) and _PHRASES[by].search(sentence.replace("\u2019", "'")) is not None


def _can_be_decision(sentence: str) -> bool:
    """Return whether a sentence has a fitting length and expresses no doubt."""
    is_short = len(sentence) <= _LONGEST_SENTENCE and _SHORTEST <= len(sentence.split()) <= _LONGEST
    return is_short and not _UNSURE.search(sentence)
