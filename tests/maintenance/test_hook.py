"""What agents call: it returns at once, says nothing, never fails, and has the work done by one process at a time."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from retold.agents.protocol import Agent
from retold.archive.store import Store
from retold.maintenance import hooks
from retold.maintenance.invocation import make_hook_call, own_command, parse_environment, variables
from retold.maintenance.restore import find_own_homes, remove_ghosts
from retold.synchronization.update import try_lock
from support.gemini_home import GeminiHome, gemini, metadata, user
from support.installed_script import InstalledPerson
from support.person import source_states

SAID = [user("u1", 1, "Where does the heron nest?"), gemini("g1", 2, "In the reeds.")]


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    home = GeminiHome(tmp_path / "ann")
    home.lines("den", 1, 1, SAID, kind="main")
    return home


@pytest.fixture
def ann(made: GeminiHome) -> InstalledPerson:
    return InstalledPerson(made.folder)


def ghost(made: GeminiHome, minute: int = 9) -> Path:
    """Leave what a resume leaves."""
    return made.write(f"{made.name('den', 1, minute)}.jsonl", json.dumps(metadata(1, 1, kind="main")) + "\n")


def called(
    ann: InstalledPerson, event: str = "SessionEnd", told: str = "{}"
) -> subprocess.CompletedProcess[str]:
    """Do what the CLI does: hand the line to a shell, in an environment of its own, and wait for the pipes."""
    settings = json.loads((ann.folder / ".gemini" / "settings.json").read_text(encoding="utf-8"))
    line = settings["hooks"][event][0]["hooks"][0]["command"]
    env = {"HOME": str(ann.folder), "PATH": "/nowhere"}
    return subprocess.run(
        ["/bin/sh", "-c", line], env=env, input=told, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_hook_archives_and_removes_the_ghost(ann: InstalledPerson, made: GeminiHome) -> None:
    assert ann.call("keep", "--install").code == 0
    late = ghost(made)
    made.lines("den", 2, 20, SAID, kind="main")
    done = called(ann, told=json.dumps({"prompt": "x" * 300_000}))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    ann.settle()
    assert not late.exists()
    ann.sync()
    rows = ann.rows()
    assert len(rows) == 2
    first = next(row for row in rows.values() if row["native_id"].startswith("00000001"))
    assert source_states(first) == ["gone", "present"]
    assert not (ann.archive / "logs").exists()


def test_a_ghost_that_is_there_already_goes_when_keep_is_installed(
    ann: InstalledPerson, made: GeminiHome
) -> None:
    late = ghost(made)
    assert ann.call("keep", "--install").code == 0
    assert not late.exists()


def test_a_hook_does_not_wait_for_the_work(ann: InstalledPerson) -> None:
    ann.call("keep", "--install")
    with (ann.archive / "sync.lock").open("r+b") as lock:
        assert try_lock(lock.fileno())
        assert [called(ann).returncode for _ in range(3)] == [0, 0, 0]  # none of them waits for the lock
        ends = time.monotonic() + 30
        while len(workers(ann)) > 1:  # the others leave the work to the first
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert len(workers(ann)) == 1 or not Path("/proc").exists()
        # A session of its own: the end of the agent does not end it.
        assert all(os.getsid(worker) == worker for worker in workers(ann))
    ann.settle()
    assert ann.rows()


def workers(ann: InstalledPerson) -> list[int]:
    """Return the processes that this person's hooks have started; none where there is no /proc to look into."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(ann.retold) in line and "--now" in line:
            found.append(int(folder.name))
    return found


def test_who_finds_somebody_at_work_leaves_a_mark_and_goes(
    ann: InstalledPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.sync()
    monkeypatch.setattr(hooks, "_start_detached", lambda *_: pytest.fail("somebody is at work already"))
    with (ann.archive / hooks.LOCK).open("wb") as lock:
        assert try_lock(lock.fileno())
        hooks.request_sync(["retold"], ann.env)
        hooks.run_requested_syncs(ann.env)
    assert (ann.archive / hooks.REQUEST_FILE).exists()


def test_what_is_asked_for_meanwhile_is_done_once_more(
    ann: InstalledPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def do(folder: str, env: object) -> None:
        done.append(env)
        if len(done) == 1:
            for _ in range(3):
                (Path(folder) / hooks.REQUEST_FILE).touch()

    monkeypatch.setattr(hooks, "_sync", do)
    hooks.run_requested_syncs(ann.env)
    assert len(done) == 2
    assert not (ann.archive / hooks.REQUEST_FILE).exists()


def test_who_says_nothing_is_not_waited_for(ann: InstalledPerson) -> None:
    ann.call("keep", "--install")
    began = time.monotonic()
    process = subprocess.Popen(
        [str(ann.retold), "keep", "--hook"], env=ann.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.wait(30) == 0  # its stdin is open all the time
    assert time.monotonic() - began < 20
    out, _ = process.communicate()
    assert out == b""
    ann.settle()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminals that hang up")
def test_a_hook_outlasts_its_terminal(ann: InstalledPerson) -> None:
    with subprocess.Popen([str(ann.retold), "keep", "--hook"], env=ann.env, stdin=subprocess.PIPE) as hook:
        ends = time.monotonic() + 60
        while not (ann.archive / "keep.asked").exists() and time.monotonic() < ends:
            time.sleep(0.001)
        hook.send_signal(signal.SIGHUP)
        assert hook.wait(60) == 0
    ann.settle()
    assert ann.rows()


@pytest.mark.parametrize("damage", ["archive", "config", "home"])
def test_a_hook_never_fails(ann: InstalledPerson, damage: str) -> None:
    ann.call("keep", "--install")
    if damage == "archive":
        (ann.archive / "archive.db").write_bytes(b"no database" * 1000)
    elif damage == "config":
        (ann.archive / "config.toml").write_text("[", encoding="utf-8")
    else:
        ann.archive.rename(ann.archive.with_name("moved"))
        ann.archive.write_text("a file", encoding="utf-8")
    done = called(ann)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if damage == "home":
        return
    ann.settle()
    log = ann.archive / "logs" / "keep.log"
    ends = time.monotonic() + 60
    while not (log.exists() and log.read_text(encoding="utf-8")) and time.monotonic() < ends:
        time.sleep(0.05)
    (line,) = log.read_text(encoding="utf-8").splitlines()
    assert ("archive.db is damaged" if damage == "archive" else "config.toml") in line
    assert not log.stat().st_mode & 0o077


def test_a_hook_of_a_retold_that_is_gone_fails_nobody(ann: InstalledPerson) -> None:
    ann.call("keep", "--install")
    ann.retold.unlink()
    done = called(ann)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    for number in range(1000):
        hooks.log_error(str(tmp_path), ValueError(f"{number} {'x' * 500}\nand more"))
    text = (tmp_path / "logs" / "keep.log").read_text(encoding="utf-8")
    assert len(text) < 2 * hooks.LONGEST_LOG
    assert "ValueError: 999 x" in text.splitlines()[-1]
    assert all(line.endswith("x and more") for line in text.splitlines())


def test_a_timer_does_the_same_itself(ann: InstalledPerson, made: GeminiHome) -> None:
    late = ghost(made)
    done = ann.run("keep", "--now", "--with", "RETOLD_HOME=/not/used/as/it/is/set")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert not late.exists()
    assert len(ann.rows()) == 1


def removed(ann: InstalledPerson) -> list[str]:
    with Store(str(ann.archive)) as record:
        return [ghost.source.path.name for ghost in remove_ghosts(record, find_own_homes(ann.env))]


def test_a_ghost_that_is_archived_is_removed_and_told(ann: InstalledPerson, made: GeminiHome) -> None:
    late = ghost(made)
    ann.sync()
    assert removed(ann) == [late.name]
    assert removed(ann) == []
    assert not late.exists()


def test_a_ghost_that_is_not_archived_stays(ann: InstalledPerson, made: GeminiHome) -> None:
    ann.sync()
    late = ghost(made)
    assert removed(ann) == []
    assert late.exists()


@pytest.mark.parametrize("how", ["time", "grown", "content"])
def test_a_ghost_that_was_touched_since_stays(ann: InstalledPerson, made: GeminiHome, how: str) -> None:
    late = ghost(made)
    ann.sync()
    before = late.stat()
    if how == "time":
        os.utime(late, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    elif how == "grown":
        with late.open("a", encoding="utf-8") as file:
            file.write("\n")
        os.utime(late, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        text = late.read_text(encoding="utf-8")
        late.write_text(text.replace("main", "mean"), encoding="utf-8")
        os.utime(late, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert removed(ann) == []
    assert late.exists()


def test_without_the_real_file_nothing_is_removed(ann: InstalledPerson, made: GeminiHome) -> None:
    late = ghost(made)
    ann.sync()
    (made.gemini / f"{made.name('den', 1, 1)}.jsonl").unlink()
    assert removed(ann) == []
    assert late.exists()


def test_a_real_file_that_goes_at_the_last_moment_saves_the_ghost(
    ann: InstalledPerson, made: GeminiHome
) -> None:
    late = ghost(made)
    ann.sync()
    ((agent, home),) = find_own_homes(ann.env)
    seen = list(agent.find_ghosts(home))
    assert len(seen) == 1
    seen[0].real[0].unlink()
    told = cast("Agent", SimpleNamespace(NAME=agent.NAME, find_ghosts=lambda _: seen))
    with Store(str(ann.archive)) as record:
        assert remove_ghosts(record, [(told, home)]) == []
    assert late.exists()


def test_a_ghost_in_another_machines_home_is_none_of_our_business(
    ann: InstalledPerson, tmp_path: Path
) -> None:
    other = GeminiHome(tmp_path / "backup")
    other.lines("den", 1, 1, SAID, kind="main")
    late = ghost(other)
    ann.sync("--home", f"laptop={other.folder}")
    assert ann.run("keep", "--now").code == 0
    assert late.exists()


def test_a_call_carries_where_things_are_and_any_shell_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s $HOME; "quoted" & 100% `odd`'
    env = {
        "HOME": "/home/ann",
        "RETOLD_HOME": str(folder),
        "GEMINI_CLI_HOME": "/g h",
        "CODEX_HOME": "",
        "X": "y",
    }
    assert variables(env) == {"RETOLD_HOME": str(folder), "GEMINI_CLI_HOME": "/g h"}
    call = make_hook_call(env, "linux")
    line = call.sh.replace(" ".join(own_command()), "printf '%s\\n'", 1).removesuffix(
        " >/dev/null 2>&1 || true"
    )
    out = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert out == ["keep", "--hook", "--with", "GEMINI_CLI_HOME=/g h", "--with", f"RETOLD_HOME={folder}"]
    assert parse_environment(out[3::2]) == variables(env)
    assert "'it''s" in call.powershell.replace(str(tmp_path) + "/", "'")
    assert call.powershell.startswith("& '")
    assert (call.is_windows, make_hook_call(env, "win32").is_windows) == (False, True)


def test_a_relative_folder_is_carried_as_it_is_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert variables({"HOME": "/home/ann", "RETOLD_HOME": "mine"}) == {"RETOLD_HOME": str(tmp_path / "mine")}
