"""Secrets that colour codes, invisible characters, escapes, line ends or base64 hide, and where they stand."""

import base64
from collections.abc import Callable
from contextlib import suppress

import pytest

from retold.redaction import Redactor
from retold.redaction.detector import find_secrets, join_lines, join_wrapped_lines, unfold
from retold.redaction.redactor import TOO_COSTLY
from retold.redaction.rules import Budget, OverBudget
from support.step_counter import assert_linear

TOKEN = "ghp" + "_" + "q7Rk2VbX9tLm4ZpW8sYd" + "Ab3De5Fg7Hi9Jk1L"
MIDDLE = len(TOKEN) // 2


def hidden(sign: str) -> str:
    return TOKEN[:MIDDLE] + sign + TOKEN[MIDDLE:]


def found_in(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in find_secrets(text)]


@pytest.mark.parametrize(
    "sign",
    [
        "\x1b[m\x1b[K",
        "\x1b[01;31m",
        "\x1b]8;;https://example.com\x07",
        "\x1b(B\x1b[m",
        "\u3164",
        "\u2028",
        "\U000e0fff",
        "\\u001b[0m",
        "\\x1b[0m",
        "\\033[1;32m",
        "\\u200b",
        "\\\\ufeff",
        "\\u00ad",
        "\u200b",
        "\u2060",
        "\ufeff",
        "\u061c",
        "\u180e",
        "\u00ad",
        "\U000e0041",
        "\\\n",
        "\n",
        "\r\n",
        "=\n",
        "' + '",
        '" +\n  "',
        "^[[01;31m^[[K",
        "\x9b31m",
        "\x00",
        "\\u0000",
        "\n    ",
        "\n+",
        "\n> ",
        " │\n│ ",
        "\\n",
        "\\\\r\\\\n",
    ],
)
def test_a_token_is_found_whole_whatever_parts_it(sign: str) -> None:
    assert found_in(f"export X='{hidden(sign)}' # now") == [hidden(sign)]


def test_a_token_with_dots_is_found_wherever_a_line_ends_in_it() -> None:
    parts = ("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiI0NzExIiwiYSI6MX0", "q7Rk2VbX9tLm4ZpW8sYd3Hc6Jf1Kg5Mn0Qa")
    token = ".".join(parts)
    assert found_in(f"X='{token}'") == [token]
    for place in range(20, len(token) - 20):
        broken = f"{token[:place]}\n{token[place:]}"
        assert found_in(f"X='{broken}'") == [broken], broken


@pytest.mark.parametrize("sign", ["\u200b", "\x1b[m", "%5F"])
def test_what_stands_around_a_hidden_token_stays(sign: str) -> None:
    parted = TOKEN.replace("_", "%5F") if sign == "%5F" else hidden(sign)
    text = f"\x1b[32mé\u200b before\x1b[0m {parted}\x1b[0m \u200bafter"
    told = Redactor().redact_text(text)
    assert told == "\x1b[32mé\u200b before\x1b[0m [redacted:github-token:1]\x1b[0m \u200bafter"


def test_a_hidden_token_and_the_plain_one_have_one_placeholder() -> None:
    text = f"{hidden(chr(0x200B))} {hidden(chr(27) + '[m')} {TOKEN}"
    assert Redactor().redact_text(text) == " ".join(["[redacted:github-token:1]"] * 3)


@pytest.mark.parametrize(
    "plain",
    [TOKEN, "DB_PASSWORD=Birke4711!", f'{{"api_key": "{TOKEN[4:]}"}}', "password: Kranich-4711\n"],
)
def test_base64_of_a_secret_is_found_however_short(plain: str) -> None:
    encoded = base64.b64encode(plain.encode()).decode()
    assert len(encoded) < 200
    assert found_in(f"echo {encoded} | base64 -d") == [encoded]


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16"])
def test_base64_of_a_powershell_command_is_found(coding: str) -> None:
    encoded = base64.b64encode(f"$env:GH_TOKEN = '{TOKEN}'; gh pr list".encode(coding)).decode()
    assert found_in(f"powershell -EncodedCommand {encoded} -NoProfile") == [encoded]
    plain = base64.b64encode("Get-ChildItem -Recurse | Select-String tide".encode(coding)).decode()
    assert not find_secrets(f"powershell -EncodedCommand {plain}")


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    "])
def test_base64_on_several_lines_is_read_as_one(width: int, end: str) -> None:
    plain = f"# the settings of the shop, as they are on the server\nUSER=shop\nTOKEN={TOKEN}\nPORT=8080\n"
    encoded = base64.b64encode(plain.encode()).decode()
    block = end.join(encoded[place : place + width] for place in range(0, len(encoded), width))
    assert found_in(f"cat a.b64\n{block}\ndone") == [block]


def test_lines_of_base64_without_a_secret_stay() -> None:
    encoded = base64.b64encode(b"a text of several lines in which nothing is secret\n" * 5).decode()
    lines = "\n".join(encoded[place : place + 64] for place in range(0, len(encoded), 64))
    assert not find_secrets(f"cat a.b64\n{lines}\ndone")


def test_an_address_in_an_address_is_escaped_twice() -> None:
    once = TOKEN.replace("_", "%5F")
    twice = f"/login?next=%2Fcallback%3Ftoken%3D{once.replace('%', '%25')}"
    assert found_in(f"GET {twice} HTTP/1.1") == [once.replace("%", "%25")]


@pytest.mark.parametrize("plain", ["Hello world, this is a test", '{"page": 2, "limit": 50}'])
def test_base64_of_other_texts_stays(plain: str) -> None:
    assert not find_secrets(f"echo {base64.b64encode(plain.encode()).decode()} | base64 -d")


@pytest.mark.parametrize(
    "text",
    [
        "first_long_word_1\nsecond_long_word_2\nthird_long_word_3\n",
        "the pass\u200bword is wrong\n",
        "\x1b[31m-    token = None\x1b[m\n\x1b[32m+    token = fetch()\x1b[m\n",
        "'Hello ' + 'world' + 'token'",
        "100%25 of 20%20 items",
        "first_long_word_1\n    second_long_word_2\n    third_long_word_3\n",
        '{"a": "first_long_word_1\\nsecond_long_word_2"}',
        "| first_long_word_1 |\n| second_long_word_2 |\n",
    ],
)
def test_texts_with_such_signs_and_no_secret_stay(text: str) -> None:
    assert not find_secrets(text)


@pytest.mark.parametrize(
    "behind", ["\nsome_other_word1\n", "\n    print2file(x9Y8z7)\n", "\\nA1b2C3d4E5=x\\n"]
)
def test_the_line_behind_a_whole_token_stays(behind: str) -> None:
    assert found_in(f"{TOKEN}{behind}") == [TOKEN]


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b[31m",
        "\u200bx",
        "%41",
        "\\u0041",
        "abcdefg1\n",
        "'a' + ",
        "QUJDREVGR0hJSktMTU5PUFFS ",
        "QUJDREVGR0hJSktMTU5PUFFS\n",
        "abcdefg1\\n",
        "\n    abcdefg1 │",
        "^[[31m",
        "%2541",
        "\\\n",
        "echo -p",
    ],
)
def test_reading_once_more_takes_steps_that_grow_with_the_text(piece: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = f"{TOKEN} " + piece * size
        return lambda: (unfold(text), join_lines(text), join_wrapped_lines(text), find_secrets(text))

    assert_linear(prepare, 300)


COSTLY = ("\x1b[mbearer+", "\u200bauthorization=", "%41-----BEGIN PRIVATE KEY-----")


@pytest.mark.parametrize("crumb", COSTLY)
def test_a_text_that_hides_too_much_is_left_out(crumb: str) -> None:
    hostile = f"{hidden(chr(0x200B))} " + crumb * (200_000 // len(crumb))
    assert Redactor(free_steps=1_000).redact_text(hostile) == TOO_COSTLY


@pytest.mark.parametrize("crumb", COSTLY)
def test_reading_once_more_spends_steps(crumb: str) -> None:
    text = crumb * (20_000 // len(crumb))
    budget = Budget(len(text), free=0)
    allowed = budget.left
    with suppress(OverBudget):
        find_secrets(text, budget)
    assert 0 < allowed - budget.left < 2 * allowed
