"""The WebSocket under a channel: whole messages in, frames out, and every way it can end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.frames import Opcode

from leaf.protocol import PROTOCOL_VERSION
from tests.leaf.channel_scenes import run

HELLO = b'{"hello":{"protocol":%d,"root":"r"}}' % PROTOCOL_VERSION
PING = b'{"ping":%d}'


@contextmanager
def limited(**limits: float) -> Iterator[None]:
    """Other limits for the time being."""
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(f"leaf.wire.{name}", limit)
        yield


# --- the handshake -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [("/channel", 101), ("/channel?x=1", 101), ("/", 404), ("/channel/", 404), ("/healthz", 404)],
)
def test_there_is_one_path(staged: Any, path: str, status: int) -> None:
    """A WebSocket is opened at the channel's path; anywhere else there is none."""

    async def scene() -> None:
        async with staged() as stage:
            root = stage.asked_for(path)
            assert (await root.response()).status_code == status
            if status != 101:
                await root.connection_ends()
                assert not stage.server_state.connections

    asyncio.run(scene())


@run
async def test_who_speaks_another_websocket_is_refused(staged: Any) -> None:
    """A handshake that is none is answered as HTTP has it, and the connection ends."""
    async with staged() as stage:
        root = stage.asked_for("/channel", {"Sec-WebSocket-Version": "12"})
        assert (await root.response()).status_code == 400
        await root.connection_ends()


@run
async def test_nothing_is_compressed(staged: Any) -> None:
    """A root that offers compression is answered without: it would cost more than the rest."""
    async with staged() as stage:
        root = stage.asked_for("/channel", {"Sec-WebSocket-Extensions": "permessage-deflate"})
        assert "Sec-WebSocket-Extensions" not in (await root.response()).headers


# --- messages in -------------------------------------------------------------------------


@run
async def test_fragments_are_one_message(staged: Any) -> None:
    """A message may come in pieces, with empty ones and a ping between them."""
    async with staged() as stage:
        root = await stage.connects()
        root.client.send_binary(HELLO[:5], fin=False)
        root.client.send_continuation(b"", fin=False)
        root.client.send_ping(b"between")
        root.client.send_continuation(HELLO[5:], fin=True)
        root.sends()
        assert await root.frame(Opcode.PONG) == b"between"
        assert (await root.hears()).hello is not None
        assert await root.is_left_alone()
        assert stage.leaf.ledger.frame_bytes["in"] == len(HELLO) + len(PING % 424242)


@run
async def test_messages_may_arrive_in_any_cut(staged: Any) -> None:
    """Neither a byte at a time nor several frames at once change what is heard."""
    async with staged() as stage:
        root = await stage.greeted()
        for number in range(3):
            root.client.send_binary(PING % number)
        sent = b"".join(root.client.data_to_send())
        for at in range(len(sent)):
            root.transport.protocol.data_received(sent[at : at + 1])
        root.transport.protocol.data_received(sent)
        assert [(await root.hears()).pong for _ in range(6)] == [0, 1, 2, 0, 1, 2]


@run
async def test_text_in_fragments_is_text(staged: Any) -> None:
    """Text is refused in words, whole or in pieces, even when it is no text at all."""
    async with staged() as stage:
        root = await stage.greeted()
        root.client.send_text(b"\xff", fin=False)
        root.client.send_continuation(b"\xfe", fin=True)
        root.sends()
        assert (await root.hears()).refused == "malformed frame: frames are binary, not text"
        assert await root.close_code() == 4002


@pytest.mark.parametrize("fragments", [1, 5])
def test_a_message_too_large_ends_the_connection(staged: Any, fragments: int) -> None:
    """The limit is one of messages: cutting one into small frames does not help."""

    async def scene() -> None:
        async with staged() as stage:
            with limited(FRAME_BYTES_MAX=100):
                root = await stage.greeted()
            root.client.send_binary(b" " * (101 // fragments + 1), fin=fragments == 1)
            for fragment in range(1, fragments):
                fin = fragment == fragments - 1
                root.client.send_continuation(b" " * (101 // fragments + 1), fin=fin)
            root.sends()
            assert await root.close_code() == 1009
            await root.connection_ends()
            assert stage.leaf.connections() == 0

    asyncio.run(scene())


# --- frames out --------------------------------------------------------------------------


@run
async def test_a_root_that_reads_late_hears_everything(staged: Any) -> None:
    """What waits below the bound is delivered in order once the root reads again."""
    async with staged() as stage:
        root = await stage.greeted()
        root.reads(reads=False)
        for number in range(100):
            root.says(ping=number)
        root.reads(reads=True)
        assert [(await root.hears()).pong for _ in range(100)] == list(range(100))
        assert stage.leaf.ledger.dropped_channels == 0


@run
async def test_a_root_that_does_not_read_is_dropped_once(staged: Any) -> None:
    """Past the bound the connection is cut, not closed: closing would wait for the root."""
    with limited(OUTGOING_BYTES_MAX=1_000):
        async with staged() as stage:
            root = await stage.greeted()
            root.reads(reads=False)
            for number in range(1_000):
                root.says(ping=number)
            await root.connection_ends()
            assert len(root.transport.unread) < 1_100
            assert stage.leaf.ledger.dropped_channels == 1


# --- ends --------------------------------------------------------------------------------


@run
async def test_a_root_may_take_its_leave(staged: Any) -> None:
    """Its close is answered, and what it asked for in the same breath is let go of."""
    async with staged() as stage:
        root = await stage.greeted()
        root.client.send_binary(PING % 1)
        root.client.send_close(1000)
        root.sends()
        assert await root.close_code() == 1000
        await root.connection_ends()
        assert stage.leaf.connections() == 0
        assert not stage.server_state.connections


@run
async def test_a_refused_root_that_does_not_leave_is_cut_off(staged: Any) -> None:
    """It gets its moment to read why; then the connection ends whatever it does."""
    with limited(CLOSE_S=0.0):
        async with staged() as stage:
            root = await stage.greeted()
            root.reads(reads=False)
            root.says(b"no frame")
            await root.connection_ends()
            assert b"malformed frame" in root.transport.unread


@run
async def test_after_a_refusal_nothing_is_heard(staged: Any) -> None:
    """What follows the frame at fault is not answered, even when it came along with it."""
    async with staged() as stage:
        root = await stage.greeted()
        root.client.send_binary(b"no frame")
        root.client.send_binary(PING % 1)
        root.sends()
        assert (await root.hears()).refused is not None
        assert await root.close_code() == 4002
        await root.connection_ends()
        assert root.events.empty()


@run
async def test_a_leaf_that_ends_says_so(staged: Any) -> None:
    """The server's end closes every connection with the code for it."""
    async with staged() as stage:
        root = await stage.greeted()
        (connection,) = stage.server_state.connections
        connection.shutdown()
        assert await root.close_code() == 1012
        await root.connection_ends()
        assert not stage.server_state.connections


@run
async def test_a_peer_gone_without_a_word_is_noticed(staged: Any) -> None:
    """Silence is asked about, and what does not answer is dropped."""
    with limited(LOOK_S=0.0):
        async with staged() as stage:
            root = await stage.connects()
            root.reads(reads=False)
            await root.connection_ends()
            assert not stage.server_state.connections


@run
async def test_a_silent_root_that_is_there_is_kept(staged: Any) -> None:
    """Whoever answers may say nothing for as long as it likes."""
    with limited(LOOK_S=0.0):
        async with staged() as stage:
            root = await stage.connects()
            for _ in range(10):
                assert await root.frame(Opcode.PING) == b""
            assert stage.server_state.connections
