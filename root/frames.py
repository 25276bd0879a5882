"""Frames as bytes: writing what a tick has for a leaf, reading what a leaf sends."""

from __future__ import annotations

from typing import Any, Final

import aiohttp
import msgspec
import orjson

from index_data.manifest import GenerationCard
from leaf.protocol import FRAME_BYTES_MAX, LeafFrame, LeafHello
from root.ranking import Leaf
from root.scatter import Ask
from root.topology import Held

ASKS_BYTES_MAX: Final = FRAME_BYTES_MAX // 4
"""Asks beyond this wait for the next frame: a thousand queries of the largest size at once
must not make a frame that a leaf refuses."""
LEG_BYTES: Final = 16

Group = tuple[Ask, int, list[int], dict[int, str]]
"""Legs of one ask: the ask, the number of the first leg, the shards, and of tied legs, by their
place among them, the address of the twin."""

_DECODE: Final = msgspec.json.Decoder(LeafFrame).decode


class ChannelLost(Exception):
    """The connection is of no use any more; the text says why.

    ``broke_protocol`` when the leaf answered, but with what it must not.
    """

    broke_protocol = False


class BrokenProtocol(ChannelLost):
    """The leaf sent what no honest leaf sends."""

    broke_protocol = True


def read_holdings(leaf: Leaf, hello: LeafHello) -> list[Held]:
    """Return what a leaf says it holds. Raises BrokenProtocol."""
    try:
        held = [
            Held(
                leaf,
                msgspec.json.decode(holding.card, type=GenerationCard),
                holding.shards,
                holding.leaving,
                collection,
            )
            for collection, holdings in hello.collections.items()
            for holding in holdings
        ]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BrokenProtocol(f"the leaf's hello describes no generation: {error}") from None
    if len({holding.card.generation for holding in held}) < len(held):
        raise BrokenProtocol("the leaf names a generation twice")
    for holding in held:
        if not holding.card.documents or len(set(holding.shards)) < len(holding.shards):
            raise BrokenProtocol("the leaf holds a generation without shards, or a shard twice")
        if any(not 0 <= shard < len(holding.card.documents) for shard in holding.shards):
            raise BrokenProtocol("the leaf says it holds shards that its generation lacks")
        if not set(holding.leaving) <= set(holding.shards):
            raise BrokenProtocol("the leaf is to give up shards that it does not hold")
    return held


def how_many_fit(groups: list[Group]) -> int:
    """Return how many asks to write in one frame: all, unless that would be a huge one."""
    size = 0
    for count, (ask, _, shards, _) in enumerate(groups):
        size += len(ask.body) + LEG_BYTES * len(shards)
        if size > ASKS_BYTES_MAX and count:
            return count
    return len(groups)


def written_ask(group: Group, now: float) -> dict[str, Any]:
    """Return an ask for some shards as it goes over the wire, with the time left at ``now``."""
    ask, first, shards, twins = group
    written: dict[str, Any] = {
        "kind": ask.kind,
        "generation": ask.generation,
        "body": orjson.Fragment(ask.body),
        "budget_ms": max(0.0, (ask.deadline_s - now) * 1000.0),
        "first": first,
        "shards": shards,
        "priority": ask.priority,
    }
    if ask.ordinals is not None:
        written["ordinals"] = [ask.ordinals[shard] for shard in shards]
    if ask.query is not None:
        written["query"] = ask.query
    if ask.trace:
        written["trace"] = ask.trace
    if twins:
        peers = {url: number for number, url in enumerate(dict.fromkeys(twins.values()))}
        numbers = [peers[twins[leg]] if leg in twins else None for leg in range(len(shards))]
        written["tie"] = {"key": ask.tie, "peers": list(peers), "twins": numbers}
    return written


def read_frame(message: aiohttp.WSMessage) -> LeafFrame:
    """Decode what came in; ChannelLost where it is no frame or a refusal."""
    if message.type is aiohttp.WSMsgType.TEXT:
        raise BrokenProtocol("the leaf sent text; frames are binary")
    if message.type is not aiohttp.WSMsgType.BINARY:
        raise ChannelLost("the connection was closed")
    try:
        frame = _DECODE(message.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenProtocol(f"the leaf sent what is no frame: {error}") from None
    if frame.refused is not None:
        raise ChannelLost(f"the leaf refused this root: {frame.refused}")
    return frame
