"""Answers as an honest leaf gives them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leaf.protocol import Hits, ranked


def hits(
    leg: int,
    scores: Sequence[float],
    ordinals: Sequence[int],
    total: int | None = None,
    *,
    queue_us: int = 0,
    service_us: int = 0,
) -> Hits:
    """A shard's hits, best first; ``total`` is their number unless there are more."""
    best, both = ranked(scores, ordinals)
    raw = msgspec.Raw(msgspec.json.encode(both))
    found = len(ordinals) if total is None else total
    return Hits(leg, queue_us, service_us, found, best, raw)
