"""What is held back is handed on when it is due, in order, and not before."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leaf.asks import Finished
from leaf.courier import Courier

ANSWER_S = 10.0
"""What takes this long will never come; no test waits for it when all is well."""


class Scene:
    """A courier, a clock that stands still, and what has been handed on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.handed_on: queue.Queue[int] = queue.Queue()
        self.courier = Courier(lambda: self.now, self._put)

    def _put(self, sink: Any, finished: Finished) -> None:
        self.handed_on.put(finished.answers[0][0])

    def hold(self, leg: int, for_s: float) -> None:
        sink: Any = None
        self.courier.hold(sink, Finished("search", [(leg,)], ()), for_s)

    def arrives(self) -> int:
        return self.handed_on.get(timeout=ANSWER_S)


@contextmanager
def scene() -> Iterator[Scene]:
    made = Scene()
    made.courier.start()
    try:
        yield made
    finally:
        made.courier.stop()


def test_what_is_due_is_handed_on_in_the_order_of_its_time() -> None:
    """Not in the order in which it came; what is due at once, in that."""
    with scene() as stage:
        for leg, for_s in ((0, 30.0), (1, 10.0), (2, 20.0), (3, 10.0)):
            stage.hold(leg, for_s)
        stage.now = 25.0
        stage.courier.look()
        assert [stage.arrives() for _ in range(3)] == [1, 3, 2]
        assert stage.handed_on.empty()
        stage.now = 30.0
        stage.courier.look()
        assert stage.arrives() == 0


def test_what_is_due_sooner_does_not_wait_for_what_came_before() -> None:
    """The courier, asleep until the first is due, is woken for one that is due before it."""
    with scene() as stage:
        stage.hold(0, 1000.0)
        stage.hold(1, 0.0)
        assert stage.arrives() == 1


def test_what_is_held_at_the_end_is_not_heard_of_again() -> None:
    """Ending waits for nobody's answer."""
    with scene() as stage:
        stage.hold(0, 1000.0)
    assert stage.handed_on.empty()


def test_a_courier_that_never_started_can_be_ended() -> None:
    """A leaf that fails while it starts ends all the same."""
    Scene().courier.stop()
