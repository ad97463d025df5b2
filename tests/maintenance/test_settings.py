"""Settings with comments: the call of retold is put in, and taken out without a trace."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.agents.protocol import HookPlan
from retold.maintenance.json_edit import (
    MalformedSettings,
    events_with_hook,
    has_planned_hooks,
    parse_json,
    with_hook,
    without_hook,
)

ENTRY = {"hooks": [{"type": "command", "command": "'/opt/retold' keep --hook", "timeout": 30}]}
PLAN = HookPlan(Path("settings.json"), ("SessionEnd", "Stop"), ENTRY)
SHAPES = {
    "one line": '{"theme": "dark"}',
    "tight": '{"theme":"dark","list":[1,2]}',
    "pretty": '{\n  "theme": "dark",\n  "size": 3\n}\n',
    "tabs": '{\n\t"theme": "dark"\n}',
    "four spaces and windows": '{\r\n    "theme": "dark"\r\n}\r\n',
    "byte order mark": '\ufeff{\n  "theme": "dark"\n}\n',
    "trailing comma": '{\n  "theme": "dark",\n}\n',
    "trailing comma with a comment": '{\n  "theme": "dark", // mine\n  // end\n}\n',
    "comment behind": '{\n  "theme": "dark" // a "dark" one, {really}\n}\n',
    "block comment behind": '{ "theme": "dark" /* , */ }',
    "comments everywhere": '// head\n{ /* a */ "a" /* b */ : /* c */ 1 /* d\n */ , // e\n "b": [ // f\n ] }\n// tail',
    "others' hooks": '{\n  "hooks": {\n    "SessionStart": [{"hooks": []}]\n  }\n}',
    "others' hooks of the event": '{"hooks": {"Stop": [{"hooks": [{"command": "other"}]}]}, "z": 1}',
    "others' hooks of the event, tall": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": []}, // mine\n    ],\n  },\n  "z": 1\n}',
    "escaped": '{"a\\"b": "\\u00e9\\\\", "hooks": {"X": []}}',
    "not indented": '{\n"a": 1,\n"b": 2\n}',
    "empty with a comment": "{\n  // nothing yet\n}\n",
}


def plain(text: str) -> Any:
    """Return what a text means, by taking out the comments the simple way: these texts have none in strings."""
    root = parse_json(text)

    def value(node: Any) -> Any:
        if node.kind == "object":
            return {member.key: value(member.value) for member in node.members}
        if node.kind == "array":
            return [value(member.value) for member in node.members]
        return json.loads(text[node.start : node.end])

    return value(root)


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_hook_is_put_in_and_taken_out_again(text: str) -> None:
    before, after = plain(text), with_hook(text, PLAN)
    hooks = dict(before.get("hooks", {}))
    for event in PLAN.events:
        hooks[event] = [*hooks.get(event, []), ENTRY]
    assert plain(after) == {**before, "hooks": hooks}
    assert sorted(events_with_hook(after)) == ["SessionEnd", "Stop"]
    assert has_planned_hooks(after, PLAN)
    assert with_hook(after, PLAN) == after
    assert without_hook(after) == text
    assert without_hook(text) == text


def test_what_is_put_in_looks_like_its_neighbours() -> None:
    text = '{\r\n    "theme": "dark", // mine\r\n    "size": 3 // points\r\n}\r\n'
    plan = HookPlan(Path("x"), ("Stop",), {"hooks": ["retold keep --hook"]})
    assert with_hook(text, plan) == text.replace(
        "3 // points",
        '3, // points\n    "hooks": {\n        "Stop": [\n            {\n                "hooks": [\n'
        '                    "retold keep --hook"\n                ]\n            }\n        ]\n    }'.replace(
            "\n", "\r\n"
        ),
    )
    assert with_hook('{"a": 1}', plan) == '{"a": 1, "hooks": {"Stop": [{"hooks": ["retold keep --hook"]}]}}'


def test_an_older_call_gives_way_to_the_new_one() -> None:
    old = HookPlan(Path("x"), ("SessionEnd",), {"hooks": [{"command": "/old/retold keep --hook"}]})
    text = with_hook(SHAPES["pretty"], old)
    assert not has_planned_hooks(text, PLAN)
    after = with_hook(text, PLAN)
    assert "/old/" not in after
    assert without_hook(after) == SHAPES["pretty"]


def test_of_a_group_that_calls_others_too_only_ours_goes() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "x keep --hook"}]}]}}'
    assert without_hook(text) == '{"hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}'
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "x keep --hook"}, {"command": "a"}]}]}}'
    assert plain(without_hook(text)) == {"hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}


def test_what_was_added_behind_ours_stays() -> None:
    after = with_hook(SHAPES["pretty"], PLAN).rstrip().removesuffix("}").rstrip() + ',\n  "later": true\n}\n'
    assert without_hook(after) == '{\n  "theme": "dark",\n  "size": 3,\n  "later": true\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "[]", '"x"', "{", '{"a"}', '{"a": 1 "b": 2}', '{"a": 1}}', "{a: 1}", "{'a': 1}", '{"a": 01}', '{"a": tru}',
        "{,}", '{"a": 1,,}', '{"a": "\n"}', '{"a": "\\x"}', '{"a": 1} /* open', '{"hooks": []}', '{"hooks": null}',
        '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": "x"}}', '{"a": ' * 5000, "[" * 100_000, '{"a": 1',
    ],
)  # fmt: skip
def test_what_is_broken_is_refused(text: str) -> None:
    with pytest.raises(MalformedSettings):
        with_hook(text, PLAN)


def test_an_empty_object_is_filled() -> None:
    after = with_hook("{}", PLAN)
    assert plain(after) == {"hooks": {"SessionEnd": [ENTRY], "Stop": [ENTRY]}} == json.loads(after)
    assert plain(with_hook(None, PLAN)) == plain(after)


BLANKS = st.text(" \t", max_size=2)
COMMENTS = st.sampled_from(["", "", " /* x, } */", " // y { ,\n", "\n", "\r\n", "\n// z\n", "/*\n*/"])
KEYS = st.sampled_from(["a", "b", "theme", 'q"', "é"])
SCALARS = st.one_of(st.integers(), st.booleans(), st.none(), st.text("ab\"\\/*,{}[]'\né", max_size=5))


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    """A value with blanks and comments wherever they may be."""
    if depth == 0 or draw(st.booleans()):
        return json.dumps(draw(SCALARS), ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        return draw(containers("[]", st.tuples(st.just(""), values(depth=depth - 1))))
    return draw(
        containers("{}", st.tuples(KEYS.map(lambda key: json.dumps(key) + ":"), values(depth=depth - 1)))
    )


@st.composite
def containers(
    draw: st.DrawFn, brackets: str, members: st.SearchStrategy[tuple[str, str]], least: int = 0
) -> str:
    text = brackets[0]
    found = draw(st.lists(members, min_size=least, max_size=3))
    for place, (key, value) in enumerate(found):
        is_last = place == len(found) - 1
        comma = "," if not is_last or draw(st.booleans()) else ""
        text += (
            draw(BLANKS)
            + draw(COMMENTS)
            + key
            + draw(COMMENTS)
            + value
            + draw(COMMENTS)
            + comma
            + draw(COMMENTS)
        )
    return text + draw(COMMENTS) + draw(BLANKS) + brackets[1]


@st.composite
def settings(draw: st.DrawFn) -> str:
    """Settings, perhaps with hooks of others; none of which are there and empty."""
    entries = containers("[]", st.tuples(st.just(""), st.just('{"hooks": [{"command": "other"}]}')), least=1)
    events = st.tuples(st.sampled_from(['"Stop":', '"SessionEnd":', '"Other":']), entries)
    hooks = st.tuples(st.just('"hooks":'), containers("{}", events, least=1))
    others = st.tuples(KEYS.map(lambda key: json.dumps(key) + ":"), values())
    members = st.one_of(others, hooks) if draw(st.booleans()) else others
    return draw(COMMENTS) + draw(containers("{}", members, least=1)) + draw(COMMENTS)


@given(settings())
def test_whatever_the_settings_look_like_nothing_else_changes(text: str) -> None:
    after = with_hook(text, PLAN)
    assert sorted(events_with_hook(after)) == ["SessionEnd", "Stop"]
    assert with_hook(after, PLAN) == after
    assert without_hook(after) == text


@given(st.text('{}[]",:/*\n \\ahooks1', max_size=30))
def test_nothing_but_a_refusal_comes_of_any_text(text: str) -> None:
    try:
        after = with_hook(text, PLAN)
    except MalformedSettings:
        return
    assert sorted(events_with_hook(after)) == ["SessionEnd", "Stop"]
