"""The floor speaks the channel's language: only so does it cost what the channel must cost."""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
import orjson

from bench.echo_floor import LENGTH_BYTES, EchoPeer
from leaf.protocol import LeafFrame, ranked

HITS = [3, 7, 2, *ranked([2.5, 1.5], [4, 9])]


class Written:
    """Keeps what a peer writes."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, data: bytes) -> None:
        assert int.from_bytes(data[:LENGTH_BYTES]) == len(data) - LENGTH_BYTES
        self.frames.append(data[LENGTH_BYTES:])


def test_every_leg_is_answered_as_a_leaf_answers_it() -> None:
    """A frame cut anywhere on the way comes back as one LeafFrame with a leg for each shard."""
    peer, written = EchoPeer(HITS), Written()
    peer.connection_made(cast("asyncio.Transport", written))
    frame = orjson.dumps({"asks": [{"first": 5, "shards": [1, 8]}]})
    message = len(frame).to_bytes(LENGTH_BYTES) + frame
    for byte in message:
        peer.data_received(bytes([byte]))
    (answer,) = written.frames
    read = msgspec.json.decode(answer, type=LeafFrame)
    assert [hits.leg for hits in read.hits] == [5, 6]
    assert all(hits.read() == ([2.5, 1.5], [4, 9]) for hits in read.hits)
    assert (read.hits[0].total, read.hits[0].best) == (2, 2.5)
