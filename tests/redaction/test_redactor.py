"""A session without its secrets: wherever they stand, however they are written, and nothing else is lost."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from typing import Any

import msgspec
import pytest

from retold.model.serialization import decode_session
from retold.model.session import Attachment, Message, Session, Text, Thinking, ToolCall
from retold.redaction import Redactor
from retold.redaction.detector import find_secrets
from retold.redaction.redactor import TOO_COSTLY, find_unchecked_data
from retold.redaction.rules import Budget, OverBudget
from retold.redaction.secrets import KINDS
from support.blind_secrets import blind_samples
from support.labelled_secrets import Sample, samples
from support.secret_session import AT, PICTURE, session_filled_with
from support.session_json import session_json
from support.step_counter import assert_linear

KEY = "AIza" + "SyB7" + "k" * 3 + "Q9" * 14  # in the shape of a key, and none
SECRET = "q7Rk2VbX9tLm4ZpW8sYd"  # noqa: S105 - invented
PASSWORD = "Birke-4711-Ember"  # noqa: S105 - invented


def session_of(*parts: Any, extra: dict[str, Any] | None = None, key: str = "made:session-1") -> Session:
    message = Message("m1", "user", AT, "live", None, None, None, tuple(parts))
    return msgspec.structs.replace(
        session_filled_with(lambda: "", key=key), timeline=(message,), extra=extra or {}
    )


def call(arguments: dict[str, Any], result: str | None = None) -> ToolCall:
    return ToolCall(
        "c1", "shell", "shell_exec", "Execute", arguments, "success", None, result, None, AT, None
    )


def told(session: Session) -> str:
    return session_json(session).decode()


@pytest.mark.parametrize("sample", samples("seen")[::3], ids=lambda sample: sample.name)
def test_no_secret_survives_anywhere_in_a_session(sample: Sample) -> None:
    redacted = Redactor().redact(session_filled_with(lambda: sample.text))
    plain = "\n".join(texts(json.loads(session_json(redacted))))
    for label in sample.labels:
        if label.kind != "home":  # a short name may be a word elsewhere
            assert sample.text[label.start : label.end] not in plain
            assert label.value not in plain


def texts(tree: Any) -> list[str]:
    match tree:
        case str():
            return [tree]
        case dict():
            return [text for pair in tree.items() for side in pair for text in texts(side)]
        case list():
            return [text for item in tree for text in texts(item)]
    return []


def test_a_secret_has_one_placeholder_in_all_sessions_of_an_export() -> None:
    redactor = Redactor()
    first = told(redactor.redact(session_of(Text(f"use {KEY} and write to lena@nordwind.dev"))))
    second = told(redactor.redact(session_of(Text(f"max@nordwind.dev, lena@nordwind.dev, {KEY}"))))
    assert "use [redacted:google-api-key:1] and write to [redacted:email:1]" in first
    assert "[redacted:email:2], [redacted:email:1], [redacted:google-api-key:1]" in second


def test_a_secret_that_one_place_gives_away_is_taken_out_everywhere() -> None:
    session = session_of(
        Text(f"run it with {SECRET}, and {PASSWORD}"),
        call({"env": {"ACME_TOKEN": SECRET}}, f"logged in with {PASSWORD}\nDB_PASSWORD={PASSWORD}"),
    )
    redacted = told(Redactor().redact(session))
    assert SECRET not in redacted
    assert PASSWORD not in redacted
    assert "run it with [redacted:secret:1], and [redacted:password:1]" in redacted


def test_sessions_that_were_learned_first_are_without_the_secrets_of_later_ones() -> None:
    early, late = session_of(Text(f"so {SECRET}")), session_of(Text(f"API_KEY={SECRET}"))
    redactor = Redactor()
    redactor.learn(early)
    redactor.learn(late)
    assert SECRET not in told(redactor.redact(early))
    assert SECRET in told(Redactor().redact(early))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git clone https://ann:%s@git.example/a", "git clone https://ann:[redacted:url-password:1]@git.example/a"),
        ("postgres://app:%s@db:5432/shop", "postgres://app:[redacted:url-password:1]@db:5432/shop"),
        ("https://ann:%s@localhost:8080/x (down)", "https://ann:[redacted:url-password:1]@localhost:8080/x (down)"),
    ],
)  # fmt: skip
def test_an_address_keeps_its_host(text: str, expected: str) -> None:
    assert Redactor().redact_text(text % PASSWORD) == expected


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_name_of_a_placeholder_names_no_secret(kind: str) -> None:
    text = f"https://ann:[redacted:{kind}:1]@host/x"
    assert find_secrets(text) == []
    assert find_secrets(f"{text} password={PASSWORD}") != []


def test_no_placeholder_stands_in_another() -> None:
    texts = [
        *(sample.text for sample in samples("seen")),
        *(sample.text for sample in blind_samples("blind", "secrets")),
    ]
    redacted = [Redactor().redact_text(text) for text in texts]
    assert sum("[redacted:" in text for text in redacted) > len(texts) / 2
    assert [text for text in redacted if re.search(r"\[redacted:[^\]]*\[", text)] == []


@pytest.mark.parametrize(
    ("password", "is_removed", "is_removed_everywhere"),
    [("ir7x", False, False), ("iri7x", True, False), ("iris77x", True, False), ("iris77xy", True, True)],
)
def test_how_long_a_password_is_decides_where_it_is_removed(
    password: str, *, is_removed: bool, is_removed_everywhere: bool
) -> None:
    """Five characters make a password, and eight make one that is no word elsewhere."""
    session = session_of(Text(f"password: {password}"), Text(f"the {password} branch"))
    redacted = told(Redactor().redact(session))
    assert ("password: [redacted:password:1]" in redacted) == is_removed
    assert ("the [redacted:password:1] branch" in redacted) == is_removed_everywhere
    assert (password in redacted) != is_removed_everywhere


@pytest.mark.parametrize(("name", "is_removed"), [("mara", False), ("maral", True)])
def test_a_short_name_of_a_user_is_removed_in_homes_alone(name: str, *, is_removed: bool) -> None:
    redacted = Redactor().redact_text(f"/home/{name}/x: {name} was here")
    assert redacted == f"/home/user-1/x: {'user-1' if is_removed else name} was here"


def test_homes_keep_their_shape_and_names_go_with_them() -> None:
    session = session_of(
        Text("cd /home/oskarsen/dev/x; C:\\Users\\Oskarsen\\x; /Users/max/y; max(1, 2); oskarsen was here"),
        Text("-rw-r--r-- 1 max staff 1 a; max@kiefer:~$"),
    )
    redacted = Redactor().redact(session)
    first, second = (part.text for part in redacted.timeline[0].parts)  # type: ignore[union-attr]
    assert first == "cd /home/user-1/dev/x; C:\\Users\\user-1\\x; /Users/user-2/y; max(1, 2); user-1 was here"
    assert second == "-rw-r--r-- 1 user-2 staff 1 a; user-2@kiefer:~$"


def test_a_home_after_a_colon_is_one_and_a_folder_of_that_name_is_none() -> None:
    text = "skills@file:/Users/oskarsen/x src:/home/m.okafor C:/Users/Lunaweber/y a:\\Users\\b, web/home/anna x/Users/ben"
    told = "skills@file:/Users/user-1/x src:/home/user-2 C:/Users/user-3/y a:\\Users\\user-4, web/home/anna x/Users/ben"
    assert Redactor().redact_text(text) == told


def test_names_give_away_what_objects_and_command_lines_hold() -> None:
    arguments = {
        "password": "birke99", "pin": {"password": 4711007}, "argv": ["login", "--password", "amsel77x", "-v"],
        "env": [{"name": "DB_PASSWORD", "value": "iris77x"}], "max_tokens": 819200, SECRET: {"token": SECRET},
    }  # fmt: skip
    redacted = Redactor().redact(session_of(call(arguments)))
    held = told(redacted)
    for secret in ("birke99", "4711007", "amsel77x", "iris77x", SECRET):
        assert secret not in held
    assert '"max_tokens":819200' in held


def test_keys_that_would_become_one_stay_two() -> None:
    arguments = {"lena@nordwind.dev": 1, "[redacted:email:1]": 2}
    redacted = Redactor().redact(session_of(call(arguments)))
    (part,) = redacted.timeline[0].parts  # type: ignore[union-attr]
    assert sorted(part.arguments.values()) == [1, 2]  # type: ignore[union-attr]


def test_what_links_things_stays() -> None:
    session = session_filled_with(lambda: "/home/oskarsen/x", key="made:oskarsen-shop/checkpoint-a")
    redacted = Redactor().redact(session)
    assert redacted.key == session.key
    assert redacted.children == session.children
    assert [entry.id for entry in redacted.timeline] == [entry.id for entry in session.timeline]
    assert redacted.usage == session.usage
    leaking = session_filled_with(lambda: "", key=f"made:{KEY}")
    assert KEY not in told(Redactor().redact(leaking))


def test_pictures_and_sealed_thoughts_are_left_out_unless_pictures_may_stay() -> None:
    session = session_of(
        Attachment(None, "image/png", PICTURE),
        Thinking(None, "hm", signature="Er" + "Ab3/" * 40),
        Attachment(None, "text/plain", "aGVsbG8gd29ybGQ="),
        Text("![x](data:image/png;base64," + PICTURE[:-1] + "A" * 600 + ")"),
    )
    out = Redactor()
    redacted = out.redact(session)
    assert PICTURE[:40] not in told(redacted)
    assert "Ab3/Ab3/" not in told(redacted)
    assert "aGVsbG8gd29ybGQ=" in told(redacted)  # a text that was looked at
    assert {removal.kind for removal in out.report()} == {"unchecked"}
    kept = told(Redactor(keep_attachments=True).redact(session))
    assert PICTURE in kept
    assert "Ab3/Ab3/" not in kept


def test_long_runs_of_data_within_a_text_are_left_out_unless_they_hold_a_harmless_text() -> None:
    sealed, open_text = "Zq9/" * 700, base64.b64encode(b"nothing to see here, move on. " * 60).decode()
    hiding = base64.b64encode(b"nothing to see here but lena@nordwind.dev " * 60).decode()
    redacted = Redactor().redact_text(f'{{"a": "{sealed}", "b": "{open_text}", "c": "{hiding}"}}')
    assert redacted == (
        f'{{"a": "[left out: 2,800 characters of data]", "b": "{open_text}", "c": "[left out: 3,360 characters of data]"}}'
    )


def test_numbers_of_any_size_and_halves_of_characters_do_no_harm() -> None:
    redacted = Redactor().redact(session_of(call({"password": 10**5000, "token": f"{SECRET}\ud800"})))
    (part,) = redacted.timeline[0].parts  # type: ignore[union-attr]
    assert part.arguments["password"] == "[left out: cannot be checked]"  # type: ignore[union-attr]  # noqa: S105
    assert Redactor().redact_text("DB_PASSWORD=sommerwind; password='Birke\ud80042'").count("[redacted:") == 2


def test_values_that_are_too_deep_too_long_or_no_values_are_left_out() -> None:
    deep: Any = SECRET
    for _ in repeat(None, 300):
        deep = {"a": [deep]}
    session = session_of(call({"deep": deep}, "x " * 600), extra={"odd": {1, 2}, "raw": b"\xff"})
    redacted = told(Redactor(longest=1000).redact(session))
    assert SECRET not in redacted
    assert "too deep" in redacted
    assert "too long" in redacted
    assert redacted.count("cannot be checked") == 2


def test_the_report_says_where_and_never_what() -> None:
    redactor = Redactor()
    redactor.redact(
        session_of(Text(f"{KEY} {KEY}"), call({"env": {"ACME_TOKEN": SECRET, f"{KEY}": "lena@nordwind.dev"}}))
    )
    report = redactor.report()
    lines = [(r.kind, r.placeholder, r.count, r.place.session, r.place.entry, r.place.field) for r in report]
    session = "made:session-1"
    assert lines[0] == ("google-api-key", "[redacted:google-api-key:1]", 2, session, "m1", "parts.text")
    assert ("secret", "[redacted:secret:1]", 1, session, "m1", "parts.arguments.env.ACME_TOKEN") in lines
    assert KEY[:8] not in msgspec.json.encode(report).decode()
    assert SECRET[:8] not in msgspec.json.encode(report).decode()


def test_a_redacted_session_can_be_read_again_and_a_text_alone_be_redacted() -> None:
    redacted = Redactor().redact(session_filled_with(lambda: f"mail lena@nordwind.dev {KEY}"))
    assert decode_session(session_json(redacted)) == redacted
    assert Redactor().redact_text(f"a {KEY} b") == "a [redacted:google-api-key:1] b"


HOSTILE = (
    "a", "@", "a@", "://a:", "-----BEGIN PRIVATE KEY-----", "password=", 'password="', "cookie: a=b;", "curl ", "mysql ", "Ab3/",
    "eyJ", "sk-", "/home/", "%40", "\\u0041", "\\", "key_", "token: ", "basic ", "authorization: ", "xoxb-", "-b 'a=b;",
)  # fmt: skip


@pytest.mark.parametrize("crumb", HOSTILE)
def test_a_text_of_nothing_but_beginnings_is_gone_through_in_the_end(crumb: str) -> None:
    assert Redactor().redact_text(crumb * (20_000 // len(crumb))) is not None


@pytest.mark.parametrize(
    "text", ["x" * 400 + "!", "-" * 100_000 + ">", ("A" * 76 + "\n") * 2_000 + "!", "a " * 50_000]
)
def test_text_that_is_almost_data_is_read_once(text: str) -> None:
    """The pattern for data took time that doubled with each further character: this test would never end."""
    assert list(find_unchecked_data(text, keep_images=False)) in ([], [(0, 400)], [(0, len(text) - 1)])


@pytest.mark.parametrize(
    "text",
    [
        'token = "' + "A" * 60 + '="',  # took time that doubled with each letter
        "\\" * 50_000 + "\\u0041",
        "key = " + "\\" * 50_000,
        "authorization:" + " " * 50_000,
        "cookie: " + "x" * 50_000,
        "key>" * 20_000,
    ],
)
def test_no_rule_reads_a_text_again_and_again(text: str) -> None:
    assert Redactor().redact_text(text)


COSTLY = ("-----BEGIN PRIVATE KEY-----", "bearer+", "authorization=")
"""Beginnings of secrets, each of which makes a rule read on."""


@pytest.mark.parametrize("crumb", COSTLY)
def test_a_text_that_costs_too_much_is_left_out_and_reported(crumb: str) -> None:
    redactor = Redactor()
    hostile = f'password = "{SECRET}"\n' + crumb * (100_000 // len(crumb))
    redacted = redactor.redact(session_of(Text(hostile), Text("fine")))
    assert SECRET not in told(redacted)
    (message,) = redacted.timeline
    assert isinstance(message, Message)
    assert message.parts == (Text(TOO_COSTLY), Text("fine"))
    (removal,) = redactor.report()
    assert (removal.kind, removal.placeholder, removal.count) == ("unchecked", TOO_COSTLY, 1)
    assert removal.place.field == "parts.text"
    assert redactor.copy().redact_text(hostile) == TOO_COSTLY


@pytest.mark.parametrize("crumb", COSTLY)
def test_the_steps_of_the_rules_are_counted(crumb: str) -> None:
    """Whatever a text is made of, the rules stop soon after its steps are used up."""
    text = crumb * (100_000 // len(crumb))
    budget = Budget(len(text), free=0)
    allowed = budget.left
    with suppress(OverBudget):
        find_secrets(text, budget)
    assert 0 < allowed - budget.left < 2 * allowed


def test_ordinary_texts_take_few_steps() -> None:
    for sample in samples("seen"):
        budget = Budget(len(sample.text))
        before = budget.left
        find_secrets(sample.text, budget)
        assert before - budget.left < 10 * len(sample.text) + 200, sample.text


def many_secrets(count: int) -> list[str]:
    """Texts with a password and a user each, all of them different."""
    return [f'password = "Ember-{n}-Birke" in /home/maxine{n}/notes of user maxine{n}' for n in range(count)]


@pytest.mark.slow
def test_many_secrets_take_steps_that_grow_with_their_number() -> None:
    def prepare(size: int) -> Callable[[], object]:
        session = session_of(*(Text(text) for text in many_secrets(size)))
        return lambda: Redactor().redact(session)

    assert_linear(prepare, 300)


def sealed_keys(count: int) -> dict[str, int]:
    """Return an object whose keys are data of the same length, which one text stands in for."""
    sealed = (hashlib.shake_256(str(number).encode()).digest(225) for number in range(count))
    return {base64.b64encode(data).decode(): number for number, data in enumerate(sealed)}


def test_keys_that_become_the_same_take_steps_that_grow_with_their_number() -> None:
    def prepare(size: int) -> Callable[[], object]:
        session = session_of(call(sealed_keys(size)))
        return lambda: Redactor().redact(session)

    assert_linear(prepare, 60)


def test_keys_that_become_the_same_stay_apart() -> None:
    taken = {"[left out: 300 characters of data]'2": "mine"}
    (message,) = Redactor().redact(session_of(call(taken | sealed_keys(4)))).timeline
    assert isinstance(message, Message)
    (part,) = message.parts
    assert isinstance(part, ToolCall)
    stand_in = "[left out: 300 characters of data]"
    names = [f"{stand_in}'2", stand_in, *(f"{stand_in}'{mark}" for mark in ("", "3", "4"))]
    assert part.arguments == dict(zip(names, ["mine", 0, 1, 2, 3], strict=True))


def test_many_secrets_are_taken_out_as_few_are() -> None:
    texts = [
        *many_secrets(600),
        "Ember-3-Birke and Ember-33-Birke, Ember-3-BirkeEmber-3-Birke",
        'x\\nmaxine7 said "maxine9"; maxine70',
        "API_TOKEN=aaaa1B2c3D4e5F6g7 then aaaa1B2c3D4e5F6g7aaaa1B2c3D4e5F6g7",
    ]
    many, few = Redactor(), Redactor()
    many.learn(session_of(*map(Text, texts)))
    few.learn(session_of(*map(Text, (*many_secrets(10), *texts[-3:]))))
    for text in texts[-3:]:
        mine, others = many.redact_text(text), few.redact_text(text)
        assert "Ember" not in mine
        assert "aaaa" not in mine
        assert "maxine7 " not in mine
        if "33" not in text and "70" not in text:
            assert mine == others


@pytest.mark.parametrize("home", ["/srv/people/anneli", "/srv/people/anneli/"])
def test_a_home_that_lies_elsewhere_is_told_as_a_tilde(home: str) -> None:
    text = "cat /srv/people/anneli/tides.py /srv/people/anneliese/tides.py; cd /srv/people/anneli"
    assert Redactor(home=home).redact_text(text) == "cat ~/tides.py /srv/people/anneliese/tides.py; cd ~"
