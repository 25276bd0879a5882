"""What can go wrong with leaves, drawn from a seed: each kind of fault breaks and mends itself.

    crash        the connection is lost; the leaf is back after a while
    empty        as crash, but it comes back with nothing, and has its shards only later
    flap         the connection is lost and made again, many times
    garbage      it breaks the protocol: the root drops it, and it connects again, again and again
    mumble       it sends hits that cannot be read
    stop         as SIGSTOP: it does nothing and loses nothing, and goes on later
    hang         legs are never done, until it is restarted
    slow         legs take forty times as long
    refuse       it refuses or fails some or all legs, for any reason there is
    deaf         it heeds no cancel: answers come after the end
    skew         its clock jumps by minutes
    suspect      it is put on probation, for no reason
    suspend      the machine is suspended, a few times: all that was due meanwhile is due at once

Faults may coincide, on one leaf too; the last one to say how it works is heeded then. Once all
have ended everything is as it was, whatever coincided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

import msgspec

from bench.simulation.scripted import HANGS, Deed, Leg, Script, hangs, takes_about
from bench.simulation.scripted_fleet import at
from bench.simulation.watched import WatchedFleet
from bench.virtual_time import running_loop
from leaf.protocol import Documents, Hits, Refusal
from root.channel import RETRY_S
from root.conduct import CONDUCT, FailureReason
from root.probation import Probation

SLOW_S: Final = 0.2
"""Median time of a leg of a slow leaf: most callers have given up by then."""

FLAP_S: Final = 0.05
"""A flapping leaf stays and is away for up to so long."""

GARBLED_S: Final = 0.01
"""Garbage comes up to so long after a leg."""

SKEW_S: Final = 600.0

SUSPENDED_S: Final = 0.2
"""A suspension, and the time until the next, last up to so long: as long as most callers wait."""

REASONS: Final[tuple[FailureReason, ...]] = tuple(
    reason for reason in CONDUCT if reason not in {"gone", "garbage"}
)
"""For what a leaf that is there refuses or fails a leg."""

UNREADABLE: Final = msgspec.Raw(b'[["best"],[0]]')


class Trouble:
    """Breaks leaves at random instants, and mends them. ``story`` is (second, what happened)."""

    def __init__(
        self, fleet: WatchedFleet, probation: Probation, usual: Script, random: Random
    ) -> None:
        """``usual`` is what leaves do when nothing is wrong."""
        self.story: list[tuple[float, str]] = []
        self.suspended: list[tuple[float, float]] = []
        self._fleet = fleet
        self._probation = probation
        self._usual = usual
        self._random = random
        self._honest = fleet[0].answer

    async def run(self, faults: int, lasts_s: float) -> None:
        """Let so many faults begin and end within ``lasts_s`` seconds, then mend everything."""
        random = self._random
        async with asyncio.TaskGroup() as group:
            for _ in range(faults):
                kind = random.choice(DRAWN)
                number = random.randrange(len(self._fleet.leaves))
                from_s, to_s = sorted(random.uniform(0.0, lasts_s) for _ in range(2))
                group.create_task(self._fault(kind, number, from_s, to_s - from_s))
        self._mend()

    async def _fault(self, kind: str, number: int, after_s: float, lasts_s: float) -> None:
        await asyncio.sleep(after_s)
        self._tell(f"{kind}: leaf {number}, for {lasts_s:.4f} s")
        await FAULTS[kind](self, number, lasts_s)
        self._tell(f"{kind}: leaf {number}, over")

    def _tell(self, what: str) -> None:
        self.story.append((asyncio.get_running_loop().time(), what))

    def _mend(self) -> None:
        for number, leaf in enumerate(self._fleet.leaves):
            leaf.script = self._usual
            leaf.answer = self._honest
            leaf.deaf = False
            leaf.resume()
            if leaf.leaf.trial is not None:  # half of the fleet may be: too many to do without
                leaf.leaf.rejoin(asyncio.get_running_loop().time(), leaf.leaf.latency_s)
            self.find(number)

    def lose(self, number: int, reason: FailureReason = "gone") -> None:
        """Lose a leaf that is there."""
        if self._fleet[number].leaf.connected:
            self._fleet.disconnect(number, reason)

    def find(self, number: int, *, empty_handed: bool = False) -> None:
        """Have a leaf again, whether it was away or had nothing."""
        self._fleet.come_back(number, empty_handed=empty_handed)

    # --- kinds -------------------------------------------------------------------------------

    async def crash(self, number: int, lasts_s: float) -> None:
        """See the module's text, as for the others."""
        self.lose(number)
        await asyncio.sleep(lasts_s)
        self.find(number)

    async def empty(self, number: int, lasts_s: float) -> None:
        """Come back twice: with nothing, then with everything."""
        self.lose(number)
        await asyncio.sleep(lasts_s / 2)
        self.find(number, empty_handed=True)
        await asyncio.sleep(lasts_s / 2)
        self.find(number)

    async def flap(self, number: int, lasts_s: float) -> None:
        """Lose it again and again."""
        until_s = asyncio.get_running_loop().time() + lasts_s
        while asyncio.get_running_loop().time() < until_s:
            self.lose(number)
            await asyncio.sleep(self._random.uniform(0.0, FLAP_S))
            self.find(number)
            await asyncio.sleep(self._random.uniform(0.0, FLAP_S))

    async def garbage(self, number: int, lasts_s: float) -> None:
        """Answer a leg with what is no answer; the root comes back as soon as it does."""

        def break_protocol() -> None:
            self.lose(number, "garbage")
            at(RETRY_S[0], lambda: self.find(number))

        def script(_: Leg) -> Deed:
            at(self._random.uniform(0.0, GARBLED_S), break_protocol)
            return HANGS

        await self._say(number, script, lasts_s)
        await asyncio.sleep(GARBLED_S)
        break_protocol()
        await asyncio.sleep(RETRY_S[0])

    async def mumble(self, number: int, lasts_s: float) -> None:
        """Send frames that can be read, with hits that cannot."""
        honest = self._honest

        def answer(leg: Leg, queue_us: int, service_us: int) -> Hits | Documents | Refusal:
            reply = honest(leg, queue_us, service_us)
            if isinstance(reply, Hits) and reply.total:
                reply.ranked = UNREADABLE
            return reply

        self._fleet[number].answer = answer
        await asyncio.sleep(lasts_s)
        self._fleet[number].answer = honest

    async def stop(self, number: int, lasts_s: float) -> None:
        """Freeze it."""
        self._fleet[number].stop()
        await asyncio.sleep(lasts_s)
        self._fleet[number].resume()

    async def hang(self, number: int, lasts_s: float) -> None:
        """Take legs and do nothing; what hangs has to be lost for its legs to end."""
        await self._say(number, hangs(), lasts_s)
        self.lose(number)
        await asyncio.sleep(RETRY_S[0])
        self.find(number)

    async def slow(self, number: int, lasts_s: float) -> None:
        """Work as if on another disk."""
        await self._say(number, takes_about(SLOW_S, 0.5, self._random), lasts_s)

    async def refuse(self, number: int, lasts_s: float) -> None:
        """End a share of the legs for one reason, after no work or a little."""
        random, usual = self._random, self._usual
        deed = Deed(random.choice([0.0, 0.001, 0.01]), random.choice(REASONS), "as drawn")
        share = random.choice([0.2, 0.5, 1.0])
        self._tell(f"refuse: leaf {number}, {deed.ends} for {share:.0%} after {deed.work_s} s")
        await self._say(
            number, lambda leg: deed if random.random() < share else usual(leg), lasts_s
        )

    async def deaf(self, number: int, lasts_s: float) -> None:
        """Heed no cancel."""
        self._fleet[number].deaf = True
        await asyncio.sleep(lasts_s)
        self._fleet[number].deaf = False

    async def skew(self, number: int, _: float) -> None:
        """Set its clock, forwards or backwards; it stays so."""
        self._fleet[number].skew_s += self._random.uniform(-SKEW_S, SKEW_S)

    async def suspect(self, number: int, _: float) -> None:
        """Give it no traffic but probes, until they or the end of the trouble bring it back."""
        leaf = self._fleet[number].leaf
        if leaf.preferred:
            self._probation.put(leaf, asyncio.get_running_loop().time())

    async def suspend(self, _: int, lasts_s: float) -> None:
        """Stop the whole world but its clock, again and again."""
        loop = running_loop()
        until_s = loop.time() + lasts_s
        while loop.time() < until_s:
            from_s = loop.time()
            loop.suspend(self._random.uniform(0.0, SUSPENDED_S))
            self.suspended.append((from_s, loop.time()))
            self._tell(f"suspend: for {loop.time() - from_s:.4f} s")
            await asyncio.sleep(self._random.uniform(0.0, SUSPENDED_S))

    async def _say(self, number: int, script: Script, lasts_s: float) -> None:
        self._fleet[number].script = script
        await asyncio.sleep(lasts_s)
        self._fleet[number].script = self._usual


Fault = Callable[[Trouble, int, float], Coroutine[Any, Any, None]]

FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        *(Trouble.crash, Trouble.empty, Trouble.flap, Trouble.garbage, Trouble.mumble),
        *(Trouble.stop, Trouble.hang, Trouble.slow, Trouble.refuse, Trouble.deaf),
        *(Trouble.skew, Trouble.suspect, Trouble.suspend),
    )
}
"""Every kind, by its name."""

DRAWN: Final = (*FAULTS, *["refuse"] * 4, *["deaf", "suspect", "suspend"] * 2)
"""What is drawn from: there are many reasons to refuse, each with something of its own to do, and
answers that come too late need luck.
"""
