"""`retold keep`: what it changes, what it shows first, and what is left when it is removed: nothing."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from retold.archive.database import RetoldError
from retold.maintenance.file_changes import LARGEST, FileChangePlan, apply_changes
from support.installed_script import InstalledPerson, file_tree
from support.person import is_root

SETTINGS = '{\n  // mine\n  "ui": {"theme": "dark"},\n}\n'
BROKEN = {
    "cut off": b'{"a": 1',
    "no object": b"[1]",
    "empty": b"",
    "hooks of another kind": b'{"hooks": [1]}',
    "an event of another kind": b'{"hooks": {"SessionEnd": {}}}',
    "no UTF-8": b'{"a": "\xff"}',
}


@pytest.fixture
def ann(tmp_path: Path) -> InstalledPerson:
    person = InstalledPerson(tmp_path / "ann")
    for name in (".gemini", ".claude", ".codex"):
        (person.folder / name).mkdir()
    gemini(person).write_text(SETTINGS, encoding="utf-8")
    gemini(person).chmod(0o640)
    return person


def gemini(person: InstalledPerson) -> Path:
    return person.folder / ".gemini" / "settings.json"


def claude(person: InstalledPerson) -> Path:
    return person.folder / ".claude" / "settings.json"


def homes(person: InstalledPerson) -> dict[str, object]:
    """Return all that is not retold's own."""
    return {path: held for path, held in file_tree(person.folder).items() if not path.startswith("retold")}


def test_what_is_installed_is_told_and_nothing_is_touched(ann: InstalledPerson) -> None:
    before = file_tree(ann.folder)
    done = ann.run("keep")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"claude  hook: no  ({ann.folder}/.claude)",
        f"codex   no hook: the timer has to do  ({ann.folder}/.codex)",
        f"gemini  hook: no  ({ann.folder}/.gemini)",
        "timer   no  (this machine has neither systemd for users, launchd, cron nor scheduled tasks)",
    ]
    assert file_tree(ann.folder) == before


def test_an_agent_that_is_not_there_is_skipped_and_told(tmp_path: Path) -> None:
    person = InstalledPerson(tmp_path / "bob")
    assert person.run("keep").out.splitlines()[:3] == [
        f"{name:8}not installed" for name in ("claude", "codex", "gemini")
    ]
    done = person.run("keep", "--install")
    assert done.code == 0
    assert "retold: gemini is not installed: skipped\n" in done.err
    assert done.err.endswith("retold: nothing to do: all is installed\n")
    assert file_tree(person.folder) == {}


def test_every_change_is_shown_then_made_and_kept_as_it_was(ann: InstalledPerson) -> None:
    done = ann.run("keep", "--install")
    assert done.code == 0, done
    assert f"--- {gemini(ann)}\n+++ {gemini(ann)}\n" in done.out
    assert f"--- /dev/null\n+++ {claude(ann)}\n" in done.out
    text = gemini(ann).read_text(encoding="utf-8")
    assert text.startswith(SETTINGS.removesuffix("\n}\n"))
    added = [line[1:] for line in done.out.splitlines() if line.startswith("+ ")]
    assert all(line in added for line in text.splitlines()[3:-1])
    assert stat.S_IMODE(gemini(ann).stat().st_mode) == 0o640
    assert stat.S_IMODE(claude(ann).stat().st_mode) == 0o600
    (backup,) = (ann.archive / "backups").iterdir()
    assert backup.read_text(encoding="utf-8") == SETTINGS
    assert str(backup) in done.err
    assert not any(path.stat().st_mode & 0o077 for path in (backup, backup.parent, ann.archive / "keep.json"))
    assert not ann.archive.stat().st_mode & 0o077
    assert [line.split("(")[0].strip() for line in ann.run("keep").out.splitlines()] == [
        "claude  hook: yes", "codex   no hook: the timer has to do", "gemini  hook: yes", "timer   no",
    ]  # fmt: skip


def test_each_agent_gets_what_it_understands(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    hooks = json.loads(claude(ann).read_text(encoding="utf-8"))["hooks"]
    assert list(hooks) == ["SessionEnd", "Stop"]
    for groups in hooks.values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert (hook["type"], hook["timeout"]) == ("command", 30)
    text = gemini(ann).read_text(encoding="utf-8").replace("// mine", "").replace("},\n}", "}\n}")
    hooks = json.loads(text)["hooks"]
    assert list(hooks) == ["SessionEnd", "AfterAgent"]
    for groups in hooks.values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert (hook["name"], hook["type"], hook["timeout"]) == ("retold", "command", 30_000)


def test_a_second_time_there_is_nothing_to_do(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    before = file_tree(ann.folder)
    done = ann.run("keep", "--install")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("retold: nothing to do: all is installed\n")
    assert file_tree(ann.folder) == before


@pytest.mark.parametrize("what", ["--install", "--remove"])
def test_a_dry_run_shows_and_changes_nothing(ann: InstalledPerson, what: str) -> None:
    if what == "--remove":
        ann.run("keep", "--install")
    before = file_tree(ann.folder)
    done = ann.run("keep", what, "--dry-run")
    assert done.code == 0
    assert "keep --hook" in done.out
    assert file_tree(ann.folder) == before
    assert ann.run("keep", what).out == done.out


def test_a_dry_run_of_nothing_is_a_wrong_call(ann: InstalledPerson) -> None:
    assert ann.run("keep", "--dry-run").code == 2
    assert ann.run("keep", "--install", "--remove").code == 2


@pytest.mark.parametrize(
    "text",
    [
        SETTINGS, "{}", "{ }", "{\n}", '{"hooks": {}}', '{\n  "hooks": {\n  }\n}', '{"hooks": {"SessionEnd": []}}',
        '{"hooks": {"SessionEnd": [ /* none */ ], "AfterAgent": [{"hooks": []}]}}', "\ufeff{}\r\n", "// nothing\n{}", None,
    ],
)  # fmt: skip
def test_when_it_is_removed_no_trace_is_left(ann: InstalledPerson, text: str | None) -> None:
    if text is None:
        gemini(ann).unlink()
    else:
        gemini(ann).write_text(text, encoding="utf-8", newline="")
    before = homes(ann)
    assert ann.run("keep", "--install").code == 0
    assert b"keep --hook" in gemini(ann).read_bytes()
    done = ann.run("keep", "--remove")
    assert done.code == 0, done
    assert homes(ann) == before
    assert not (ann.archive / "keep.json").exists()
    done = ann.run("keep", "--remove")
    assert (done.code, done.out, done.err) == (0, "", "retold: nothing to do: nothing is installed\n")


def test_what_others_have_changed_meanwhile_stays(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    gemini(ann).write_text(gemini(ann).read_text(encoding="utf-8").replace("dark", "light"), encoding="utf-8")
    claude(ann).write_text(
        claude(ann).read_text(encoding="utf-8").replace("{\n", '{\n  "model": "x",\n', 1), encoding="utf-8"
    )
    assert ann.run("keep", "--install").err.endswith("nothing to do: all is installed\n")
    ann.run("keep", "--remove")
    assert gemini(ann).read_text(encoding="utf-8") == SETTINGS.replace("dark", "light")
    assert json.loads(claude(ann).read_text(encoding="utf-8")) == {"model": "x"}


def test_a_file_of_ours_that_was_written_anew_goes_too(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    claude(ann).write_text(json.dumps(json.loads(claude(ann).read_text(encoding="utf-8"))), encoding="utf-8")
    ann.run("keep", "--remove")
    assert not claude(ann).exists()


def test_without_the_notes_it_is_removed_all_the_same(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    (ann.archive / "keep.json").write_text("{", encoding="utf-8")
    ann.run("keep", "--remove")
    assert gemini(ann).read_text(encoding="utf-8") == SETTINGS
    assert json.loads(claude(ann).read_text(encoding="utf-8")) == {}


def test_a_call_of_another_retold_is_renewed_and_removed_to_the_byte(ann: InstalledPerson) -> None:
    ann.call("keep", "--install")
    assert str(ann.retold) in gemini(ann).read_text(encoding="utf-8")
    assert "hook: yes, but it calls another retold" in ann.run("keep").out
    done = ann.run("keep", "--install")  # from this process, which is not the script
    assert str(ann.retold) not in gemini(ann).read_text(encoding="utf-8")
    assert f"-  {' ' * 10}" in done.out
    ann.run("keep", "--remove")
    assert gemini(ann).read_text(encoding="utf-8") == SETTINGS
    assert not claude(ann).exists()


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_settings_are_refused_and_nothing_is_changed(ann: InstalledPerson, data: bytes) -> None:
    gemini(ann).write_bytes(data)
    before = file_tree(ann.folder)
    done = ann.run("keep", "--install")
    assert (done.code, done.out) == (4, "")
    assert str(gemini(ann)) in done.err
    assert done.err.endswith("nothing was changed\n")
    assert len([line for line in done.err.splitlines() if "nothing was changed" in line]) == 1
    assert file_tree(ann.folder) == before
    told = ann.run("keep")
    assert told.code == 0
    assert ("gemini  hook: not known: " in told.out) == (b"SessionEnd" not in data)


def test_settings_that_broke_after_they_were_changed_are_left(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    gemini(ann).write_bytes(gemini(ann).read_bytes()[:-5])
    before = file_tree(ann.folder)
    assert ann.run("keep", "--remove").code == 4
    assert file_tree(ann.folder) == before


def test_broken_settings_without_us_do_not_stop_the_removal(ann: InstalledPerson) -> None:
    ann.run("keep", "--install")
    gemini(ann).write_bytes(b"{")
    assert ann.run("keep", "--remove").code == 0
    assert not claude(ann).exists()
    assert gemini(ann).read_bytes() == b"{"


def test_read_only_settings_are_refused(ann: InstalledPerson) -> None:
    gemini(ann).chmod(0o444)
    before = homes(ann)
    done = ann.run("keep", "--install")
    assert done.code == 4
    assert "read-only; nothing was changed" in done.err
    assert homes(ann) == before


@pytest.mark.skipif(is_root, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(ann: InstalledPerson) -> None:
    before = homes(ann)
    (ann.folder / ".claude").chmod(0o500)
    done = ann.run("keep", "--install")
    (ann.folder / ".claude").chmod(0o755)
    assert done.code == 4
    assert homes(ann) == before


def test_without_a_folder_of_our_own_nothing_is_changed(ann: InstalledPerson) -> None:
    ann.archive.write_text("a file", encoding="utf-8")
    before = file_tree(ann.folder)
    done = ann.run("keep", "--install")
    assert done.code == 4
    assert done.err.endswith("nothing was changed\n")
    assert file_tree(ann.folder) == before


def test_settings_that_are_a_folder_are_refused(ann: InstalledPerson) -> None:
    claude(ann).mkdir()
    before = homes(ann)
    assert ann.run("keep", "--install").code == 4
    assert homes(ann) == before


def test_settings_that_are_far_too_large_are_not_read(ann: InstalledPerson) -> None:
    with gemini(ann).open("wb") as file:
        file.truncate(LARGEST + 1)
    refusal = f"{gemini(ann)} is too large for a settings file; nothing was changed"
    assert refusal in ann.run("keep").out
    done = ann.run("keep", "--install")
    assert (done.code, refusal in done.err) == (4, True)
    assert not claude(ann).exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_settings_that_are_a_pipe_are_not_waited_for(ann: InstalledPerson) -> None:
    os.mkfifo(claude(ann))
    before = homes(ann)
    assert "is no file" in ann.run("keep", "--install").err
    assert homes(ann) == before


def test_a_full_disk_leaves_everything_as_it_was(
    ann: InstalledPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:  # after the first file has been written
        sync_calls.append(descriptor)
        if len(sync_calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sync_calls: list[int] = []
    before = homes(ann)
    monkeypatch.setattr(os, "fsync", full)
    done = ann.run("keep", "--install")
    assert done.code == 4
    assert done.err.endswith("No space left on device; nothing was changed\n")
    assert homes(ann) == before


def test_a_link_stays_and_what_it_leads_to_is_changed(ann: InstalledPerson) -> None:
    dotfiles = ann.folder / "dotfiles"
    dotfiles.mkdir()
    gemini(ann).rename(dotfiles / "gemini.json")
    gemini(ann).symlink_to(Path("..") / "dotfiles" / "gemini.json")
    before = homes(ann)
    assert ann.run("keep", "--install").code == 0
    assert gemini(ann).is_symlink()
    assert "keep --hook" in (dotfiles / "gemini.json").read_text(encoding="utf-8")
    assert "hook: yes" in ann.run("keep").out.splitlines()[2]
    ann.run("keep", "--remove")
    assert homes(ann) == before


def test_links_in_a_circle_are_refused(ann: InstalledPerson) -> None:
    gemini(ann).unlink()
    gemini(ann).symlink_to("settings.json")
    before = homes(ann)
    assert ann.run("keep", "--install").code == 4
    assert homes(ann) == before


def test_all_changes_are_made_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "new" / "second"
    first.write_bytes(b"1")
    last = tmp_path / "last"
    last.write_bytes(b"theirs")
    before = file_tree(tmp_path)
    changes = [
        FileChangePlan(str(first), b"1", b"one"),
        FileChangePlan(str(second), None, b"2"),
        FileChangePlan(str(last), b"3", b"three"),
    ]
    with pytest.raises(RetoldError, match="something else meanwhile; nothing was changed"):
        apply_changes(changes)
    assert file_tree(tmp_path) == before


def test_what_changed_since_it_was_read_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"theirs")
    with pytest.raises(RetoldError, match="changed by something else"):
        apply_changes([FileChangePlan(str(file), b"read", b"ours")])
    assert file.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["file"]
