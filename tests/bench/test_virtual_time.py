"""The loop in virtual time."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from bench.virtual_time import CANCELLED_MIN, NotVirtualError, run, running_loop


def test_an_hour_passes_at_once() -> None:
    """A sleep takes virtual time only."""

    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    real_s = time.monotonic()
    assert run(main) == 3600
    assert time.monotonic() - real_s < 60


def test_the_clock_stands_still_while_code_runs() -> None:
    """Only waiting advances the clock, and it starts at 0."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        before_s = loop.time()
        sum(range(100_000))
        await asyncio.sleep(0)
        return [before_s, loop.time()]

    assert run(main()) == [0, 0]


def test_timers_ring_in_order_and_at_their_time() -> None:
    """Concurrent sleeps end in the order of their times; equal ones in the order set."""

    async def main() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        rung: list[tuple[str, float]] = []

        async def ring(name: str, after_s: float) -> None:
            await asyncio.sleep(after_s)
            rung.append((name, loop.time()))

        async with asyncio.TaskGroup() as group:
            for name, after_s in [("c", 0.3), ("a", 0.1), ("b", 0.1), ("d", 0.1 + 0.2)]:
                group.create_task(ring(name, after_s))
        return rung

    names, times_s = zip(*run(main), strict=True)
    assert names == ("a", "b", "c", "d")
    assert times_s == pytest.approx((0.1, 0.1, 0.3, 0.3))


def test_a_timeout_ends_a_wait() -> None:
    """asyncio.timeout works in virtual time."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main) == 5


def test_waiting_for_what_never_comes_is_an_error() -> None:
    """With every task waiting and no timer set, the run ends loudly."""
    with pytest.raises(NotVirtualError, match="never end"):
        run(asyncio.Event().wait())


def test_sleeping_for_ever_is_an_error() -> None:
    """An infinite sleep is refused."""
    with pytest.raises(NotVirtualError, match="never rings"):
        run(asyncio.sleep(float("inf")))


def test_threads_are_refused() -> None:
    """Neither handing work to a thread nor being called by one is virtual."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(NotVirtualError):
            await asyncio.to_thread(print)
        errors: list[BaseException] = []

        def call() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except NotVirtualError as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        assert len(errors) == 1

    run(main)


def test_sockets_and_processes_are_refused() -> None:
    """Nothing of the real world can be opened."""

    async def main() -> None:
        with pytest.raises(NotVirtualError):
            await asyncio.open_connection("127.0.0.1", 9)
        with pytest.raises(NotVirtualError):
            await asyncio.create_subprocess_exec("true")

    run(main)


def test_an_exception_comes_out() -> None:
    """What main raises, run raises."""

    async def main() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(main)


def test_a_callback_may_skip_to_an_instant_before_any_other() -> None:
    """Not past a timer, nor past what is ready to run."""

    async def main() -> list[bool]:
        loop = running_loop()
        alone = loop.skip_to(1.0)
        timer = loop.call_at(2.0, lambda: None)
        before, at, past = loop.skip_to(1.5), loop.skip_to(2.0), loop.skip_to(3.0)
        assert loop.time() == 1.5
        timer.cancel()
        without = loop.skip_to(3.0)
        loop.call_soon(lambda: None)
        return [alone, before, at, past, without, loop.skip_to(4.0)]

    assert run(main) == [True, True, False, False, True, False]


def test_after_a_suspension_everything_that_was_due_rings_at_once() -> None:
    """In its order, at the time at which the machine goes on; the rest when it is due."""

    async def main() -> list[tuple[str, float]]:
        loop = running_loop()
        rung: list[tuple[str, float]] = []

        def ring(name: str) -> None:
            rung.append((name, loop.time()))

        for second, name in ((3.0, "third"), (1.0, "first"), (2.0, "second")):
            loop.call_at(second, ring, name)
        loop.suspend(2.5)
        await asyncio.sleep(1.0)
        return rung

    assert run(main) == [("first", 2.5), ("second", 2.5), ("third", 3.0)]


def test_time_that_stands_still_is_refused() -> None:
    """What sets itself a timer for now for ever is told so, as what no timer will ever wake."""

    def again() -> None:
        running_loop().call_at(running_loop().time(), again)

    async def main() -> None:
        again()
        await asyncio.sleep(1.0)

    with pytest.raises(NotVirtualError, match="stands still"):
        run(main)


def test_cancelled_timers_do_not_pile_up() -> None:
    """However far off they are; those that are left ring."""

    async def main() -> tuple[int, int]:
        loop = running_loop()
        rung: list[int] = []
        loop.call_at(5.0, rung.append, 1)
        for _ in range(1000):
            loop.call_at(1e6, rung.append, 2).cancel()
        kept = len(loop._clock.timers)
        await asyncio.sleep(10.0)
        assert rung == [1]
        return kept, len(loop.timers)

    kept, left = run(main)
    assert kept <= 2 * CANCELLED_MIN
    assert left == 0


def test_a_loop_in_real_time_is_no_virtual_one() -> None:
    """Simulated leaves refuse to run on it."""

    async def main() -> None:
        with pytest.raises(NotVirtualError, match="real time"):
            running_loop()

    asyncio.run(main())
