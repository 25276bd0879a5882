"""Frames as bytes: reading what a root sends, writing what it gets.

Reading is typed and strict. Writing takes plain tuples (see `leaf.asks.Reply`) to orjson,
which never fails for one bad answer: that leg alone is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import orjson

from leaf.asks import Reply, plain
from leaf.errors import BadFrame
from leaf.protocol import (
    FRAME_BYTES_MAX,
    PROTOCOL_VERSION,
    Ask,
    LeafHello,
    RootFrame,
    RootHello,
    Tie,
)

CLOSE_VERSION: Final = 4001
CLOSE_MALFORMED: Final = 4002
"""Close codes of ours, from the range that RFC 6455 leaves to applications."""

LEG_NUMBER_MAX: Final = 2**53
"""Legs are numbered upwards for as long as a connection lives; JSON is exact up to here."""

FRAME_LEGS_MAX: Final = 65_536
"""More legs in one ask than any index has shards."""

PING_MAX: Final = 2**63
"""What goes back in a pong must be writable."""

_ROOT_FRAME: Final = msgspec.json.Decoder(RootFrame)


def malformed(words: str) -> BadFrame:
    """Return the error for a frame that breaks the contract."""
    return BadFrame(f"malformed frame: {plain(words)}", CLOSE_MALFORMED)


def read_frame(data: bytes | None) -> RootFrame:
    """Read one frame; None stands for a frame of text. Raises BadFrame."""
    if data is None:
        raise malformed("frames are binary, not text")
    try:
        frame = _ROOT_FRAME.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise malformed(str(error)) from error
    if frame.ping is not None and not -PING_MAX <= frame.ping < PING_MAX:
        raise malformed("ping is out of range")
    return frame


def check_hello(frame: RootFrame) -> RootHello:
    """Return the hello that a first frame must have. Raises BadFrame."""
    hello = frame.hello
    if hello is None:
        raise malformed("the first frame must be a hello")
    if hello.protocol != PROTOCOL_VERSION:
        words = f"this leaf speaks protocol {PROTOCOL_VERSION}, not {plain(str(hello.protocol))}"
        raise BadFrame(words, CLOSE_VERSION)
    return hello


def check_ask(ask: Ask, next_leg: int) -> None:
    """Check what the types of an ask do not say. Raises BadFrame."""
    if len(ask.shards) > FRAME_LEGS_MAX:
        raise malformed(f"an ask has more than {FRAME_LEGS_MAX} legs")
    if not next_leg <= ask.first < LEG_NUMBER_MAX:
        raise malformed(f"first must be at least {next_leg}: legs are numbered upwards")
    if ask.kind == "fetch" and len(ask.ordinals) != len(ask.shards):
        raise malformed("ordinals must name the documents of each shard")
    if ask.tie is not None:
        check_tie(ask.tie, len(ask.shards))


def check_tie(tie: Tie, legs: int) -> None:
    """Check that a tie is about the legs of its ask. Raises BadFrame."""
    if len(tie.twins) != legs:
        raise malformed("twins must name the other leaf of each shard, or null")
    if any(twin is not None and twin >= len(tie.peers) for twin in tie.twins):
        raise malformed("a twin must be one of the peers")


def write_hello(hello: LeafHello) -> bytes:
    """Return the frame that says who a leaf is."""
    return msgspec.json.encode({"hello": hello})


def write_refused(words: str) -> bytes:
    """Return the frame that ends a conversation."""
    return orjson.dumps({"refused": words})


def write_pong(ping: int) -> bytes:
    """Return the answer to a ping."""
    return b'{"pong":%d}' % ping


def write_replies(
    hits: Sequence[Reply], documents: Sequence[Reply], refusals: Sequence[Reply]
) -> list[bytes]:
    """Return frames with all these replies: one, if it does not grow past the limit."""
    frame: dict[str, Any] = {}
    if hits:
        frame["hits"] = hits
    if documents:
        frame["documents"] = documents
    if refusals:
        frame["refusals"] = refusals
    try:
        written = orjson.dumps(frame)
        if len(written) <= FRAME_BYTES_MAX:
            return [written]
        trouble = f"an answer of {len(written)} bytes is more than a frame may have"
    except (TypeError, RecursionError) as error:
        # A field that JSON has no word for; orjson's error is a TypeError.
        trouble = str(error)
    return _write_apart(hits, documents, refusals, trouble)


def _write_apart(
    hits: Sequence[Reply], documents: Sequence[Reply], refusals: Sequence[Reply], trouble: str
) -> list[bytes]:
    """Halve until every frame can be written; the reply that cannot be is refused instead."""
    replies = [*hits, *documents]
    if len(replies) == 1 and not refusals:
        leg, queue_us, service_us = replies[0][:3]
        return write_replies((), (), [(leg, queue_us, service_us, "error", plain(trouble))])
    frames: list[bytes] = []
    for kind, part in enumerate((hits, documents, refusals)):
        middle = (len(part) + 1) // 2
        for half in (part[:middle], part[middle:]):
            if half:
                only: list[Sequence[Reply]] = [(), (), ()]
                only[kind] = half
                frames += write_replies(*only)
    return frames
