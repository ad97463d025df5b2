"""Child processes of retold: they end when their parent ends, and inherit none of its locks and pipes."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess
    from typing import Any

_PR_SET_PDEATHSIG = 1
"""The option of prctl that names the signal which the kernel sends at the parent's death. Linux only."""
_NAME = "retold-worker"
PRIVATE: set[int] = set()
"""Descriptors that no child may hold: the sync lock, and this process's ends of pipes.

Descriptors of SQLite are not among them. In a forked child, SQLite goes on using those of the parent's connections.
"""


def can_fork() -> bool:
    """Return whether this process may fork: on Linux, with a second core, and while no other thread of Python runs.

    A lock that another thread holds at that moment stays locked in the child for ever. Threads of Arrow do not count:
    it starts them as it is imported, and a child that writes Parquet needs none of its locks.
    """
    threading = sys.modules.get("threading")
    is_alone = threading is None or threading.active_count() == 1
    return sys.platform == "linux" and (os.cpu_count() or 1) > 1 and is_alone


def can_start() -> bool:
    """Return whether this process may start others: a worker of a pool of `multiprocessing` may not."""
    module = sys.modules.get("multiprocessing.process")
    return module is None or not module.current_process().daemon


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
    """Start a process that runs a function of a module with these arguments; connections are passed on among them.

    It is forked where `can_fork` holds. Elsewhere it is a new Python, which imports the function's module. It never runs
    the user's script again, as processes of `multiprocessing` do: the script may be what called us. `can_start` must hold.
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
    """Let the kernel kill a forked process when its parent dies, and close what is the parent's alone.

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
    """Let `multiprocessing` tell processes of this name of no main module: they would run the user's script again.

    The main module itself stays where it is, because other threads may look things up in it at any moment.
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
