"""The WebSocket under a channel: what a socket receives becomes messages, and frames bytes.

Nothing of ours stands between the socket and the channel: no task, no queue, no event. A
message is handed on while its bytes are being received, and a frame is written where it was
made. What a root has not read yet waits in the transport's buffer, up to a bound.

The server makes one `Wire` for each request to upgrade, gives it the request's bytes, and
from then on everything that arrives on the connection.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from leaf.channel import Channel
from leaf.protocol import CHANNEL_PATH, FRAME_BYTES_MAX
from leaf.service import Leaf

log = logging.getLogger(__name__)

OUTGOING_BYTES_MAX: Final = 4 * FRAME_BYTES_MAX
"""How much may wait for a root to read: more than any query's answers, and bounded."""

CLOSE_S: Final = 1.0
"""How long a refused peer may take to read why."""

LOOK_S: Final = 20.0
SILENT_LOOKS_MAX: Final = 2
"""How often to look whether anything came, and at how many looks in a row nothing may have.
A root pings five times a second; whoever does not is asked after one silent look. Only a peer
that is gone without a word says nothing then, and it costs no more than a connection."""

DATA: Final = frozenset({Opcode.BINARY, Opcode.CONT, Opcode.TEXT})
"""Frames that carry messages. The others are answered below us."""


class Wire(asyncio.Protocol):
    """One connection of the server after an upgrade: the line of one channel."""

    def __init__(self, leaf: Leaf, *, server_state: ServerState, **_: Any) -> None:
        """Take from the server what a protocol of its own would get, and use what is needed."""
        self._leaf = leaf
        self._loop = asyncio.get_running_loop()
        # The server tells whoever is in here when it ends, and waits until they are gone.
        self._connections: set[Any] = server_state.connections
        self._websocket = ServerProtocol(max_size=FRAME_BYTES_MAX)
        self._channel = Channel(self, leaf)
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._silent_looks = 0
        self._fragments = bytearray()
        self._is_text = False

    # --- called by the transport and the server ------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the request to upgrade follows."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived: the request to upgrade first, then frames or parts of them."""
        self._silent_looks = 0
        self._websocket.receive_data(data)
        self._flush()
        for event in self._websocket.events_received():
            if isinstance(event, Frame):
                self._take(event)
            elif isinstance(event, Request):
                self._answer(event)
        # Once for all that came together, and as the last thing: see `Workers.ring`.
        self._leaf.ring()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - any way it ends
        """Let go of everything."""
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._channel.end()

    def shutdown(self) -> None:
        """Take leave of the root: the server ends."""
        if self._is_open():
            self._websocket.send_close(CloseCode.SERVICE_RESTART)
            self._flush()
        self._transport.close()

    # --- called by the channel -----------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Write one frame, if the connection still takes any."""
        if not self._is_open():
            return
        self._websocket.send_binary(frame)
        self._flush()
        if self._transport.get_write_buffer_size() > OUTGOING_BYTES_MAX:
            self._leaf.ledger.dropped_channels += 1
            log.warning("a root does not read its answers; its connection is dropped")
            self._transport.abort()

    def close(self, code: int) -> None:
        """End the conversation: wait a moment for the peer to agree, then hang up."""
        if self._is_open():
            self._websocket.send_close(code)
            self._flush()
            self._call_later(CLOSE_S, self._transport.abort)

    # --- within --------------------------------------------------------------------------

    def _is_open(self) -> bool:
        return self._websocket.state is State.OPEN and not self._transport.is_closing()

    def _flush(self) -> None:
        for data in self._websocket.data_to_send():
            if data:
                self._transport.write(data)
            else:  # the end of the stream, in the library's language
                self._transport.close()

    def _answer(self, request: Request) -> None:
        if request.path.partition("?")[0] == CHANNEL_PATH:
            response = self._websocket.accept(request)
        else:
            words = f"There is no WebSocket here but {CHANNEL_PATH}.\n"
            response = self._websocket.reject(HTTPStatus.NOT_FOUND, words)
        self._websocket.send_response(response)
        self._flush()
        if self._is_open():
            self._call_later(LOOK_S, self._look)

    def _take(self, frame: Frame) -> None:
        if frame.opcode not in DATA:
            return
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        message = bytes(frame.data)
        if self._fragments or not frame.fin:
            # The library adds up their length and ends the connection past the limit.
            self._fragments += message
            if not frame.fin:
                return
            message, self._fragments = bytes(self._fragments), bytearray()
        self._channel.hear(None if self._is_text else message)

    def _look(self) -> None:
        """Find out whether the peer of a silent connection is there; drop it if not."""
        if self._silent_looks > SILENT_LOOKS_MAX:
            log.warning("a root has gone without a word; its connection is dropped")
            self._transport.abort()
            return
        if self._silent_looks and self._is_open():
            self._websocket.send_ping(b"")
            self._flush()
        self._silent_looks += 1
        self._call_later(LOOK_S, self._look)

    def _call_later(self, delay_s: float, call: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, call)
