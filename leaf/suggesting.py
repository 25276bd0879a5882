"""The work of a leg that is asked for suggestions."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from leaf.holdings import HeldGeneration, HeldShard
from leaf.suggestion import SuggestBody

SUGGEST_BODY: Final = msgspec.json.Decoder(SuggestBody)


class SuggestPlan(NamedTuple):
    """Words to search for instead."""

    generation: HeldGeneration
    body: SuggestBody

    def answer(self, shard: HeldShard, leg: int) -> tuple[Any, ...]:  # noqa: ARG002 - all alike
        """Return the words, each in the order of FetchedDocument."""
        found = self.generation.suggest(self.body, shard)
        return ([msgspec.structs.astuple(word) for word in found],)
