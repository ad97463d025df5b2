"""Room for deep values is given back, whoever asked for it in whatever order."""

import sys
import threading

from retold.model.serialization import FRAMES, allow_deep_values


def test_the_limit_is_what_it_was_after_the_last_has_left() -> None:
    before = sys.getrecursionlimit()
    is_inside, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with allow_deep_values():
            is_inside.set()
            may_leave.wait(60)

    other = threading.Thread(target=stay)
    with allow_deep_values():
        other.start()
        assert is_inside.wait(60)
    assert sys.getrecursionlimit() >= FRAMES  # the other is still there
    may_leave.set()
    other.join(60)
    assert sys.getrecursionlimit() == before
