"""Child processes: they end when their parent ends, and inherit none of its locks and pipes."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess
    from typing import Any

_PR_SET_PDEATHSIG = 1
"""The option of prctl that names the signal which the kernel sends at the parent's death. Linux only."""
_NAME = "retold-worker"
PRIVATE: set[int] = set()
"""Descriptors that a forked child closes: the sync lock, and this process's ends of pipes.

Descriptors of SQLite are not among them: in a forked child, SQLite continues to use those of the parent's connections.
"""


def can_fork() -> bool:
    """Return whether this process may fork: on Linux, with a second core, and while no other thread of Python runs.

    A lock that another thread has at that moment stays locked in the child forever. Threads of Arrow do not count: it
    starts them when it is imported, and a child that writes Parquet needs none of its locks.
    """
    threading = sys.modules.get("threading")
    is_alone = threading is None or threading.active_count() == 1
    return sys.platform == "linux" and (os.cpu_count() or 1) > 1 and is_alone


def can_start() -> bool:
    """Return whether this process may start others: a worker of a `multiprocessing` pool may not."""
    if "multiprocessing.process" not in sys.modules:
        return True
    from multiprocessing.process import current_process  # another thread may just be importing it

    return not current_process().daemon


def fork(run: Callable[[], object]) -> int:
    """Start a child that runs a function and exits, with 0 unless the function raises; return its process id.

    `can_fork` must hold.
    """
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _isolate(parent)
        run()
        code = 0
    finally:
        os._exit(code)


def start(target: Callable[..., object], *arguments: Any) -> BaseProcess:
    """Start a process that runs a function of a module; connections may be among the arguments.

    It is forked if `can_fork` holds. Otherwise it is a new Python, which imports the function's module. Unlike processes of
    `multiprocessing`, it never runs the user's script again: the script may be our caller. `can_start` must hold.
    """
    from multiprocessing import get_context

    is_forked = can_fork()
    context = get_context("fork" if is_forked else "spawn")
    process = context.Process(  # type: ignore[attr-defined]
        target=_run, name=_NAME, args=(os.getpid(), is_forked, target, arguments), daemon=True
    )
    if not is_forked:
        _leave_out_main()
    process.start()
    return process  # type: ignore[no-any-return]


def _run(parent: int, is_forked: bool, target: Callable[..., object], arguments: tuple[Any, ...]) -> None:  # noqa: FBT001 - one argument of a process
    if is_forked:
        _isolate(parent)
    else:
        _watch_parent()
    target(*arguments)


def _isolate(parent: int) -> None:
    """Let the kernel kill a forked process when its parent dies, and close the parent's private descriptors.

    With the sync lock or the other end of its pipe, a child could outlive its parent and block every later sync.
    """
    from ctypes import CDLL

    CDLL(None).prctl(_PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:  # the parent died before the call
        os._exit(1)
    for descriptor in PRIVATE:
        os.close(descriptor)
    PRIVATE.clear()


def _watch_parent() -> None:
    """End this process when its parent ends."""
    from multiprocessing import parent_process
    from threading import Thread

    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _leave_out_main() -> None:
    """Make `multiprocessing` start our processes without a main module: they would run the user's script again.

    The main module itself stays in place, because other threads may use it at any moment.
    """
    from multiprocessing import spawn

    prepare = spawn.get_preparation_data
    if hasattr(prepare, "leaves_out_main"):
        return

    def prepare_without_main(name: str) -> dict[str, Any]:
        data: dict[str, Any] = prepare(name)
        if name == _NAME:
            for entry in ("init_main_from_name", "init_main_from_path"):
                data.pop(entry, None)
        return data

    prepare_without_main.leaves_out_main = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = prepare_without_main
