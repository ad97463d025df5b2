"""The story in the README, line by line, on the demo."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
EXPECTED = {
    'eval "$(retold demo)"': "Made 52 invented conversations",
    'retold search "oven door"': "hearth-sensor",
    'mv "$GEMINI_CLI_HOME/.gemini/tmp" "$GEMINI_CLI_HOME/deleted"': "",
    "retold doctor": "19 sessions are gone from the home; the archive has them",
    'retold search "oven door" ': "Notice when somebody opens the oven door",
    "retold restore 97e5ce82": "gemini --resume r_97e5ce82",
    "retold show 97e5ce82": "Notice when somebody opens the oven door",
}
"""The lines, and the text that each prints; the second search has a blank at its end, so that both are keys."""
END = "== end of line"


def story_lines() -> list[str]:
    """Return the lines of the story, without their comments."""
    block = re.search(
        r"<!-- run by tests/maintenance/test_story.py -->\n\n```sh\n(.*?)```",
        README.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert block is not None
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


def test_the_story_in_the_readme(tmp_path: Path) -> None:
    lines = story_lines()
    assert lines == [line.strip() for line in EXPECTED]
    program = f'retold() {{ "{sys.executable}" -m retold "$@"; }}'
    script = "\n".join([program, *(f"{line}\necho '{END}'" for line in lines)])
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TZ": "UTC"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    printed = done.stdout.split(END)
    assert len(printed) == len(lines) + 1, done.stdout
    for line, text, expected in zip(lines, printed, EXPECTED.values(), strict=False):
        assert expected in text, (line, text)
    restored = list(tmp_path.rglob(".gemini/tmp/hearth-sensor/chats/*97e5ce*"))
    assert len(restored) == 1
