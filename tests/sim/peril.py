"""A fleet that one word does harm to, and searches over it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from bench.simulation.corpus import Corpus
from bench.simulation.scripted import WORKERS, Deed, Leg, takes
from bench.simulation.scripted_fleet import ScriptedFleet, at, dealt
from bench.virtual_time import run
from root.config import Settings
from root.errors import Quarantined
from root.requests import SearchRequest
from root.search import Searches
from tests.sim.serving import PLENTY

SHARDS: Final = 8
LEAVES: Final = 4
WORK_S: Final = 0.002
BACK_AFTER_S: Final = 1.0
LOST_AFTER_S: Final = 0.9
"""How long a root is patient with a leaf that is silent."""


class Peril:
    """A fleet on which ``deadly`` is a word that does harm, and the searches over it.

    A leaf that works on it is lost and comes back, or ``stalls`` one of its workers for ever.
    ``struck`` are the leaves that worked on it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        stalls: bool = False,
        shards: int = SHARDS,
        replicas: int = 2,
        workers: int = WORKERS,
    ) -> None:
        self.corpus = Corpus(400, shards)
        self.stalls = stalls
        self.harmful = True
        self.work = takes(WORK_S)
        self.struck: list[int] = []
        self.fleet = ScriptedFleet(
            self.corpus.card,
            dealt(shards, leaves=LEAVES, replicas=replicas),
            self._script,
            answer=self.corpus.answer,
            workers=workers,
        )
        self.searches = Searches(self.fleet, settings, self.now())
        self.shapes = self.searches.trials.shapes

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def _script(self, leg: Leg) -> Deed:
        if (
            not self.harmful
            or leg.flight.ask.kind != "search"
            or b"deadly" not in leg.flight.ask.body
        ):
            return self.work(leg)
        number = [leaf.leaf for leaf in self.fleet.leaves].index(leg.attempt.leaf)
        self.struck.append(number)
        if not self.stalls:
            self.lose(number, 0.001)
        return Deed(float("inf"))

    def lose(self, number: int, after_s: float) -> None:
        """Close the connection to a leaf, which is back a little later."""

        def die() -> None:
            if self.fleet[number].leaf.connected:
                self.fleet.disconnect(number)
                at(BACK_AFTER_S, lambda: self.fleet.come_back(number))

        at(after_s, die)

    def freeze(self, number: int) -> None:
        """Stop a leaf, and give it up when the root would."""
        self.fleet[number].stop()
        at(LOST_AFTER_S, lambda: self.fleet.disconnect(number))

    async def search(self, q: str, **members: Any) -> dict[str, Any]:
        return await self.searches.search(SearchRequest(q=q, **members), self.now())

    async def refused(self, q: str, **members: Any) -> Quarantined:
        """Search for what must be refused."""
        with pytest.raises(Quarantined) as caught:
            await self.search(q, **members)
        return caught.value

    async def complete(self, q: str, **members: Any) -> dict[str, Any]:
        """Search for what must be found everywhere."""
        body = await self.search(q, **members)
        assert body["coverage"]["complete"]
        assert [hit["id"] for hit in body["hits"]] == self.corpus.ids(0, 10)
        return body

    def legs(self) -> list[Leg]:
        """Legs of searches, without the fetches."""
        received = [leg for leaf in self.fleet.leaves for leg in leaf.received]
        return [leg for leg in received if leg.flight.ask.kind == "search"]


def in_peril(
    body: Callable[[Peril], Awaitable[None]], settings: Settings | None = None, **options: Any
) -> None:
    """Run a test's body in virtual time."""

    async def main() -> None:
        peril = Peril(settings or Settings(budget=PLENTY), **options)
        await body(peril)
        await asyncio.sleep(5.0)
        assert not peril.searches.trials._over

    run(main)
