"""Answers that take their time: found in a thread of their own, while the screen goes on."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def answer(ask: Callable[[], T]) -> T:
    """Return what a function returns that runs in a thread; nothing waits for the thread once nobody wants its answer.

    Not `asyncio.to_thread`: the end of the program would wait for every question that was ever asked.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # given up meanwhile
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = ask()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the answer is awaited
            error = raised
        with suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
