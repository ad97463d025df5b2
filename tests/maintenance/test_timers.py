"""Timers: whichever the machine has; where a program is missing or fails, that is told and the hooks are there all the same."""

import os
import plistlib
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.archive.database import RetoldError
from retold.maintenance.timers import TIMERS, cron, launchd, schtasks, systemd, usable_timer
from retold.maintenance.timers.machine import Machine
from support.installed_script import InstalledPerson, file_tree

WORDS = ["/opt/re told/retold", "keep", "--now", "--with", "RETOLD_HOME=/a%b $c"]
CRONTAB = """
table = here / "table"
if sys.argv[1] == "-l":
    if not table.exists():
        sys.exit("no crontab for ann")
    sys.stdout.buffer.write(table.read_bytes())
elif sys.argv[1] == "-r":
    table.unlink()
elif (here / "refuses").exists():
    sys.exit("you are not allowed to use this program")
else:
    table.write_bytes(sys.stdin.buffer.read())
"""
SYSTEMCTL = """
folder = Path(os.environ["HOME"], ".config", "systemd", "user")
link = folder / "timers.target.wants" / "retold-sync.timer"
with (here / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
if (here / "broken").exists() and sys.argv[2] != "show-environment":
    sys.exit("Failed to connect to bus")
if sys.argv[2] == "enable":
    link.parent.mkdir()
    link.symlink_to(folder / "retold-sync.timer")
elif sys.argv[2] == "disable":
    link.unlink()
elif sys.argv[2] == "is-enabled":
    sys.exit(not link.is_symlink())
"""
CALLED = """
with (here / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
sys.exit({code})
"""


@pytest.fixture
def ann(tmp_path: Path) -> InstalledPerson:
    return InstalledPerson(tmp_path / "ann")


def machine(person: InstalledPerson, platform: str = "linux") -> Machine:
    return Machine(person.env, platform)


def homes(person: InstalledPerson) -> dict[str, object]:
    return {path: held for path, held in file_tree(person.folder).items() if not path.startswith("retold")}


linux = pytest.mark.skipif("sys.platform != 'linux'", reason="these programs are of Linux")


@pytest.mark.parametrize("table", ["", "MAILTO=ann\n0 5 * * * /opt/backup 100\\%\n", "# no line end"])
def test_lines_are_put_into_a_crontab_and_taken_out_again(table: str) -> None:
    after = cron.with_lines(table, WORDS)
    assert after.startswith(table)
    assert cron.with_lines(after, WORDS) == after
    assert cron.without_lines(after).rstrip("\n") == table.rstrip("\n")
    (line,) = [line for line in after.splitlines() if line.startswith("*/15 ")]
    command = line.split(" ", 5)[5].replace("\\%", "%").removesuffix(" >/dev/null 2>&1")
    assert "%" not in line.replace("\\%", "")
    assert shlex.split(command) == WORDS


@given(
    st.lists(st.sampled_from(["0 5 * * * x", "# y", "", cron.END, "\t"])).map(
        lambda lines: "".join(f"{line}\n" for line in lines)
    )
)
def test_all_other_lines_of_a_crontab_stay(table: str) -> None:
    assert cron.without_lines(cron.with_lines(table, WORDS)) == table


def test_a_mark_without_its_end_is_left() -> None:
    table = f"a\n{cron.BEGIN}\nb\n"
    assert cron.without_lines(table) == table


@linux
def test_cron_is_used_where_there_is_nothing_else(ann: InstalledPerson) -> None:
    ann.program("crontab", CRONTAB)
    (ann.programs / "table").write_text("0 5 * * * backup\n", encoding="utf-8")
    assert ann.run("keep").out.splitlines()[-1] == "timer   no  (cron)"
    done = ann.run("keep", "--install")
    assert (done.code, "retold: cron installed\n" in done.err) == (0, True)
    assert "+*/15 * * * * " in done.out
    assert "keep --now" in (ann.programs / "table").read_text(encoding="utf-8")
    assert ann.run("keep").out.splitlines()[-1] == "timer   yes  (cron)"
    assert ann.run("keep", "--install").err.endswith("nothing to do: all is installed\n")
    assert "retold: cron removed\n" in ann.run("keep", "--remove").err
    assert (ann.programs / "table").read_text(encoding="utf-8") == "0 5 * * * backup\n"


@linux
def test_a_crontab_of_ours_alone_is_removed(ann: InstalledPerson) -> None:
    ann.program("crontab", CRONTAB)
    ann.run("keep", "--install")
    assert (ann.programs / "table").exists()
    ann.run("keep", "--remove")
    assert not (ann.programs / "table").exists()


@linux
def test_a_crontab_that_refuses_is_told_and_the_hooks_are_there(ann: InstalledPerson) -> None:
    (ann.folder / ".gemini").mkdir()
    ann.program("crontab", CRONTAB)
    (ann.programs / "refuses").touch()
    done = ann.run("keep", "--install")
    assert done.code == 0
    assert "retold: cron not installed: crontab: you are not allowed to use this program\n" in done.err
    assert "keep --hook" in (ann.folder / ".gemini" / "settings.json").read_text(encoding="utf-8")


@linux
def test_a_crontab_that_refuses_to_be_cleaned_is_told(ann: InstalledPerson) -> None:
    ann.program("crontab", CRONTAB)
    (ann.programs / "table").write_text("0 5 * * * backup\n", encoding="utf-8")
    ann.run("keep", "--install")
    (ann.programs / "refuses").touch()
    done = ann.run("keep", "--remove")
    assert done.code == 0
    assert "retold: cron not removed: crontab: you are not allowed" in done.err
    assert ann.run("keep").out.splitlines()[-1] == "timer   yes  (cron)"


@linux
def test_systemd_comes_first_and_goes_without_a_trace(ann: InstalledPerson) -> None:
    ann.program("systemctl", SYSTEMCTL)
    ann.program("crontab", CRONTAB)
    assert ann.run("keep").out.splitlines()[-1] == "timer   no  (systemd user timer)"
    before = homes(ann)
    done = ann.run("keep", "--install")
    assert (done.code, "retold: systemd user timer installed\n" in done.err) == (0, True)
    folder = ann.folder / ".config" / "systemd" / "user"
    for name in ("retold-sync.service", "retold-sync.timer"):
        assert f"+++ {folder / name}\n" in done.out
        assert (folder / name).exists()
    assert "--user enable --now retold-sync.timer" in (ann.programs / "calls").read_text(encoding="utf-8")
    assert ann.run("keep").out.splitlines()[-1] == "timer   yes  (systemd user timer)"
    assert ann.run("keep", "--install").err.endswith("nothing to do: all is installed\n")
    assert not (ann.programs / "table").exists()
    assert ann.run("keep", "--remove").code == 0
    assert homes(ann) == before


@linux
def test_a_systemd_that_fails_leaves_nothing_behind(ann: InstalledPerson) -> None:
    ann.program("systemctl", SYSTEMCTL)
    (ann.programs / "broken").touch()
    before = homes(ann)
    done = ann.run("keep", "--install")
    assert done.code == 0
    assert "systemd user timer not installed: systemctl: Failed to connect to bus\n" in done.err
    assert homes(ann) == before


@linux
def test_a_timer_is_removed_though_systemd_does_not_answer_any_more(ann: InstalledPerson) -> None:
    ann.program("systemctl", SYSTEMCTL)
    before = homes(ann)
    ann.run("keep", "--install")
    (ann.programs / "broken").touch()
    assert ann.run("keep", "--remove").code == 0
    assert homes(ann) == before


@linux
def test_the_real_systemctl_without_a_session_is_not_used(ann: InstalledPerson) -> None:
    env = {"HOME": str(ann.folder), "PATH": "/usr/bin:/bin"}
    assert not systemd.is_usable(Machine(env, "linux"))
    assert not systemd.is_installed(Machine(env, "linux"))


def test_systemd_reads_every_word_as_it_is_meant(ann: InstalledPerson) -> None:
    service, timer = systemd.changes(machine(ann), [*WORDS, 'a"b\\c'])
    assert service.after is not None
    line = next(line for line in service.after.decode().splitlines() if line.startswith("ExecStart="))
    assert line == (
        'ExecStart="/opt/re told/retold" "keep" "--now" "--with" "RETOLD_HOME=/a%%b $$c" "a\\"b\\\\c"'
    )
    assert timer.after is not None
    assert b"OnCalendar=*:0/15\n" in timer.after


def test_launchd_gets_a_file_and_is_told(ann: InstalledPerson) -> None:
    ann.program("launchctl", CALLED.format(code=0))
    mac = machine(ann, "darwin")
    assert usable_timer(mac) is launchd
    changes = launchd.changes(mac, WORDS)
    launchd.install(mac, changes)
    path = ann.folder / "Library" / "LaunchAgents" / "retold.sync.plist"
    told = plistlib.loads(path.read_bytes())
    assert (told["ProgramArguments"], told["StartInterval"]) == (WORDS, 900)
    assert launchd.is_enabled(mac)
    assert not any(change.is_needed for change in launchd.changes(mac, WORDS))
    assert f"bootstrap gui/{os.getuid()} {path}" in (ann.programs / "calls").read_text()
    launchd.remove(mac, launchd.changes(mac, None))
    assert not path.exists()


def test_a_launchd_that_refuses_leaves_nothing_behind(ann: InstalledPerson) -> None:
    ann.program("launchctl", CALLED.format(code=5))
    mac = machine(ann, "darwin")
    with pytest.raises(RetoldError, match="launchctl: failed"):
        launchd.install(mac, launchd.changes(mac, WORDS))
    assert file_tree(ann.folder) == {}


def test_a_scheduled_task_is_made_and_removed(ann: InstalledPerson) -> None:
    ann.program("schtasks", CALLED.format(code="'/Query' in sys.argv"))
    windows = machine(ann, "win32")
    assert usable_timer(windows) is schtasks
    changes = schtasks.changes(windows, WORDS)
    assert [change.before for change in changes] == [None]
    schtasks.install(windows, changes)
    schtasks.remove(windows, changes)
    calls = (ann.programs / "calls").read_text(encoding="utf-8").splitlines()
    line = subprocess.list2cmdline(WORDS)
    assert calls[-2:] == [
        f"/Create /F /TN retold-sync /SC MINUTE /MO 15 /TR {line}",
        "/Delete /F /TN retold-sync",
    ]


def test_a_scheduled_task_that_is_there_is_known_again(ann: InstalledPerson) -> None:
    ann.program("schtasks", f"print({' '.join(WORDS)!r})")
    windows = machine(ann, "win32")
    assert not any(change.is_needed for change in schtasks.changes(windows, WORDS))
    assert all(change.is_needed for change in schtasks.changes(windows, [*WORDS, "--other"]))
    assert schtasks.is_enabled(windows)


def test_a_scheduled_task_that_is_refused_is_told(ann: InstalledPerson) -> None:
    ann.program("schtasks", "sys.exit('ERROR: Access is denied.')")
    windows = machine(ann, "win32")
    for act in (schtasks.install, schtasks.remove):
        with pytest.raises(RetoldError, match="Access is denied"):
            act(windows, schtasks.changes(windows, WORDS))


@pytest.mark.parametrize("timer", TIMERS, ids=lambda timer: timer.NAME)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_where_the_program_is_missing_a_timer_is_not_used(
    ann: InstalledPerson, timer: object, platform: str
) -> None:
    assert not timer.is_usable(machine(ann, platform))  # type: ignore[attr-defined]


def test_a_program_that_cannot_be_run_is_a_program_that_failed(ann: InstalledPerson) -> None:
    (ann.programs / "crontab").write_bytes(b"\x7fELF no program")
    (ann.programs / "crontab").chmod(0o755)
    assert not cron.is_usable(machine(ann))
