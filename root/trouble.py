"""Troubling a leaf from the page, to watch the root cope: on one's own machine only.

``POST /trouble`` with ``{"leaf": URL, "do": "stop"}``:

    slow     its answers are held back some 60 ms, by the leaf itself (its interference route)
    quicken  no longer
    stop     SIGSTOP: its connections stay open, and nothing answers
    resume   SIGCONT
    kill     SIGKILL; whoever keeps the leaf running starts it again

The route is there only where the operator has asked for it, and then the root listens on the
loopback interface alone. Other pages in the same browser must not be able to use it: the request
has to name this machine as its host (so that no foreign name that points here will do), come
from a page of that host, and carry a header that pages elsewhere may not send.
"""

from __future__ import annotations

import logging
import os
import signal
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from root.channel import Channel
from root.discovery import Fleet
from root.requests import Order

log = logging.getLogger(__name__)

HEADER: Final = "x-hedgerow-trouble"
BODY_BYTES_MAX: Final = 1000

SLOW_PLAN: Final = msgspec.json.encode(
    {
        "about": "Slowed from the page",
        "rules": [
            {
                "name": "slowed",
                "kind": "transit",
                "takes": {"law": "log-normal", "median_ms": 60.0, "sigma": 0.3},
            }
        ],
    }
)
"""Some thirty times what a leg takes on a quiet machine: seen at once, and survived."""

LEAF_S_MAX: Final = 2.0


class Trouble:
    """Does to leaves what the page asks for."""

    def __init__(self, fleet: Fleet, token: str = "") -> None:
        """``token`` is the leaves' admin token; without one no leaf can be slowed."""
        self._fleet = fleet
        self._token = token
        self._slowed: dict[str, int] = {}
        self._stopped: dict[str, int] = {}

    def described(self) -> dict[str, Any]:
        """Return what can be done, and what has been."""
        self._forget_the_dead()
        deeds = ["stop", "kill"]
        if self._token:
            deeds.insert(0, "slow")
        return {"deeds": deeds, "slowed": sorted(self._slowed), "stopped": sorted(self._stopped)}

    def _forget_the_dead(self) -> None:
        """A leaf that is back as another process is neither slow nor stopped."""
        for done in (self._slowed, self._stopped):
            for url in list(done):
                hello = self._fleet.channels[url].hello
                if hello is not None and hello.pid != done[url]:
                    del done[url]

    def end(self) -> None:
        """Let everybody go on: a stopped leaf would outlive the root that stopped it."""
        for pid in self._stopped.values():
            _signal(pid, signal.SIGCONT)
        self._stopped.clear()

    async def answer(self, request: Request) -> Response:
        """Answer ``POST /trouble``. Raises HTTPException."""
        _refuse_strangers(request)
        order = await _order(request)
        channel = self._fleet.channels.get(order.leaf)
        if channel is None:
            raise HTTPException(404, "there is no such leaf")
        log.warning("leaf %s: %s, asked for on the page", channel.label, order.do)
        match order.do:
            case "slow" | "quicken":
                await self._slow(channel, on=order.do == "slow")
            case "stop" | "kill":
                self._hit(channel, order.do)
            case "resume":
                self._resume(channel)
        return Response(msgspec.json.encode(self.described()), media_type="application/json")

    async def _slow(self, channel: Channel, *, on: bool) -> None:
        """Put the plan in force at the leaf, or end it."""
        if not self._token:
            raise HTTPException(409, "leaves have no admin token, so none can be slowed")
        method, body = ("PUT", SLOW_PLAN) if on else ("DELETE", None)
        headers = {"authorization": f"Bearer {self._token}"}
        timeout = aiohttp.ClientTimeout(total=LEAF_S_MAX)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.request(method, channel.url + "/interference", data=body) as answer,
            ):
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HTTPException(409, "the leaf does not answer") from error
        if status != 200:
            raise HTTPException(409, f"the leaf has refused it with {status}")
        self._slowed.pop(channel.url, None)
        if on and channel.hello is not None:
            self._slowed[channel.url] = channel.hello.pid

    def _hit(self, channel: Channel, do: Literal["stop", "kill"]) -> None:
        """Signal the process that the leaf says it is."""
        pid = self._stopped.get(channel.url) or (channel.hello.pid if channel.hello else 0)
        if not (pid and is_loopback(urlsplit(channel.url).hostname)):
            raise HTTPException(409, "the leaf is not connected, or not on this machine")
        if not _signal(pid, signal.SIGSTOP if do == "stop" else signal.SIGKILL):
            raise HTTPException(409, "there is no such process")
        if do == "stop":
            self._stopped[channel.url] = pid
        else:
            self._slowed.pop(channel.url, None)
            self._stopped.pop(channel.url, None)

    def _resume(self, channel: Channel) -> None:
        pid = self._stopped.pop(channel.url, None)
        if pid is None or not _signal(pid, signal.SIGCONT):
            raise HTTPException(409, "the leaf was not stopped from here")


def is_loopback(host: str | None) -> bool:
    """Whether a host, by name or number, is this machine to itself."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _refuse_strangers(request: Request) -> None:
    """Raise HTTPException unless a page of this very root asks."""
    host = request.headers.get("host", "")
    if not is_loopback(urlsplit(f"//{host}").hostname):
        raise HTTPException(403, "only this machine may ask for trouble, by a name of its own")
    if request.headers.get("origin") != f"http://{host}" or HEADER not in request.headers:
        raise HTTPException(403, "only the page of this root may ask for trouble")


async def _order(request: Request) -> Order:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413)
    try:
        return msgspec.json.decode(bytes(body), type=Order)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise HTTPException(400, str(error)) from error


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process; say whether there was one. (0 and less would be groups.)"""
    if pid <= 1:
        return False
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
