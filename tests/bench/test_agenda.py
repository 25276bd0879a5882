"""What is to happen in a simulated fleet."""

from __future__ import annotations

import asyncio

import pytest

from bench.simulation.agenda import Agenda
from bench.virtual_time import NotVirtualError, run, running_loop


class Note:
    """Writes down when it happened, and enters what follows."""

    def __init__(
        self, seen: list[tuple[str, float]], name: str, *follows: tuple[float, Note]
    ) -> None:
        self.seen = seen
        self.name = name
        self.follows = follows
        self.agenda: Agenda | None = None

    def happen(self, when: float) -> None:
        assert when == running_loop().time()
        self.seen.append((self.name, when))
        for later_s, note in self.follows:
            assert self.agenda is not None
            self.agenda.enter(when + later_s, note)


def test_events_happen_in_order_between_the_timers_of_others() -> None:
    """By time; where that is equal, by entry; what is entered late but due first comes first."""
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        agenda = Agenda()
        follower = Note(seen, "follower")
        first = Note(seen, "first", (1.0, follower), (0.0, Note(seen, "at once")))
        first.agenda = agenda
        agenda.enter(5.0, Note(seen, "late"))
        agenda.enter(5.0, Note(seen, "late too"))
        agenda.enter(1.0, first)
        running_loop().call_at(1.5, lambda: seen.append(("timer", 1.5)))
        assert not seen
        await asyncio.sleep(10.0)

    run(main)
    assert seen == [
        *(("first", 1.0), ("at once", 1.0), ("timer", 1.5)),
        *(("follower", 2.0), ("late", 5.0), ("late too", 5.0)),
    ]


def test_what_becomes_ready_runs_before_the_next_event() -> None:
    """An event that wakes a task does not run ahead of it."""
    seen: list[tuple[str, float]] = []

    class Wake:
        def happen(self, _: float) -> None:
            running_loop().call_soon(lambda: seen.append(("woken", running_loop().time())))

    async def main() -> None:
        agenda = Agenda()
        agenda.enter(1.0, Wake())
        agenda.enter(2.0, Note(seen, "next"))
        await asyncio.sleep(3.0)

    run(main)
    assert seen == [("woken", 1.0), ("next", 2.0)]


def test_an_agenda_needs_virtual_time() -> None:
    """In real time nothing on it would be cheap."""

    async def main() -> None:
        Agenda()

    with pytest.raises(NotVirtualError):
        asyncio.run(main())
