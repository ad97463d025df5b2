"""What the page of datasets tells is true: its examples run, against a dataset that its command wrote."""

import doctest
import re
from pathlib import Path

import pytest

from support.person import Person

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lake.md"
_COMMAND = re.compile(r"^    retold (export .*)$", re.MULTILINE)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run(
    demo_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    person = Person(Path(demo_env["HOME"]), Path(demo_env["RETOLD_HOME"]))
    (command,) = _COMMAND.findall(text)
    done = person.run(*command.split())
    assert done.code == 0, done
    blocks = "\n".join(_PYTHON.findall(text))
    test = doctest.DocTestParser().get_doctest(blocks, {}, PAGE.name, PAGE.name, 0)
    assert len(test.examples) > 10
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
