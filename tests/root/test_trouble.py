"""Troubling leaves from the page: only from the page, and only what is a leaf."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson
import pytest
from aiohttp import web
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leaf.interference import Plan
from leaf.protocol import PROTOCOL_VERSION, LeafHello
from root.discovery import Fleet
from root.trouble import BODY_BYTES_MAX, SLOW_PLAN, Trouble, is_loopback
from tests.sim.serving import Answer, Client, Exchange

HERE = "http://127.0.0.1:1"
ELSEWHERE = "http://10.1.2.3:1"
PID = 4242
TOKEN = "0123456789abcdef"

FROM_THE_PAGE = {
    "host": "127.0.0.1:8080",
    "origin": "http://127.0.0.1:8080",
    "x-hedgerow-trouble": "1",
}


def hello(pid: int = PID) -> LeafHello:
    """What a leaf says of itself."""
    return LeafHello(PROTOCOL_VERSION, "leaf0", "leaf0", pid=pid, collections={}, workers=1)


class Page:
    """The route over a fleet of two leaves, whose signals are noted and not sent."""

    def __init__(self, token: str = "", here: str = HERE) -> None:
        self.fleet = Fleet([here, ELSEWHERE], "root")
        for channel in self.fleet.channels.values():
            channel.hello = hello()
        self.trouble = Trouble(self.fleet, token)
        self.signalled: list[tuple[int, signal.Signals]] = []

        async def problem(_: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            return Response(error.detail, error.status_code)

        route = Route("/trouble", self.trouble.answer, methods=["POST"])
        self._client = Client(
            Starlette(routes=[route], exception_handlers={HTTPException: problem})
        )

    async def ask(
        self, leaf: str, do: str, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """Press a button, or what is told instead."""
        exchange = Exchange([orjson.dumps({"leaf": leaf, "do": do}) if body is None else body])
        sent = FROM_THE_PAGE if headers is None else headers
        raw = [(name.encode(), value.encode()) for name, value in sent.items()]
        await self._client.run("POST", "/trouble", exchange, raw)
        return exchange.answer()


Body = Callable[[Page], Awaitable[None]]


def pressed(monkeypatch: pytest.MonkeyPatch, body: Body, page: Callable[[], Page] = Page) -> None:
    """Run a test's body; signals are noted, and there is a process for each."""

    async def main() -> None:
        made = page()

        def note(pid: int, number: signal.Signals) -> None:
            made.signalled.append((pid, number))

        monkeypatch.setattr("os.kill", note)
        await body(made)

    asyncio.run(main())


def test_stopping_resuming_and_killing_are_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the process that the leaf says it is; a leaf that is stopped has no hello any more."""

    async def body(page: Page) -> None:
        assert (await page.ask(HERE, "stop")).json["stopped"] == [HERE]
        page.fleet.channels[HERE].hello = None
        assert (await page.ask(HERE, "resume")).json["stopped"] == []
        page.fleet.channels[HERE].hello = hello()
        assert (await page.ask(HERE, "kill")).status == 200
        assert page.signalled == [
            (PID, signal.SIGSTOP),
            (PID, signal.SIGCONT),
            (PID, signal.SIGKILL),
        ]

    pressed(monkeypatch, body)


def test_a_stopped_leaf_can_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is not stopped any more."""

    async def body(page: Page) -> None:
        await page.ask(HERE, "stop")
        page.fleet.channels[HERE].hello = None
        assert (await page.ask(HERE, "kill")).json["stopped"] == []
        assert page.signalled[-1] == (PID, signal.SIGKILL)

    pressed(monkeypatch, body)


def test_a_leaf_that_is_back_as_another_process_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps it running has started it again; what was done to its forerunner is past."""

    async def body(page: Page) -> None:
        await page.ask(HERE, "stop")
        page.fleet.channels[HERE].hello = hello(PID + 1)
        assert page.trouble.described()["stopped"] == []

    pressed(monkeypatch, body)


def test_a_root_that_ends_lets_everybody_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else knows that the leaf was stopped."""

    async def body(page: Page) -> None:
        await page.ask(HERE, "stop")
        page.trouble.end()
        assert page.signalled[-1] == (PID, signal.SIGCONT)

    pressed(monkeypatch, body)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"host": "evil.example"}, "this machine"),
        ({"host": "127.0.0.1.evil.example:8080"}, "this machine"),
        ({"host": ""}, "this machine"),
        ({"origin": "http://evil.example"}, "page of this root"),
        ({"origin": "http://127.0.0.1:9999"}, "page of this root"),
        ({"origin": "null"}, "page of this root"),
        ({"origin": None}, "page of this root"),
        ({"x-hedgerow-trouble": None}, "page of this root"),
    ],
)
def test_other_pages_are_refused(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str | None], why: str
) -> None:
    """A foreign name for this machine, another origin, or no header of ours: 403, and nothing."""

    async def body(page: Page) -> None:
        sent = {k: v for k, v in (FROM_THE_PAGE | headers).items() if v is not None}
        answer = await page.ask(HERE, "kill", sent)
        assert answer.status == 403
        assert why in answer.body.decode()
        assert page.signalled == []

    pressed(monkeypatch, body)


@pytest.mark.parametrize(
    ("leaf", "do", "status"),
    [
        ("http://127.0.0.1:2", "kill", 404),
        (ELSEWHERE, "kill", 409),
        (ELSEWHERE, "stop", 409),
        (HERE, "resume", 409),
        (HERE, "slow", 409),
        (HERE, "erase", 400),
    ],
)
def test_what_cannot_be_done_is_said(
    monkeypatch: pytest.MonkeyPatch, leaf: str, do: str, status: int
) -> None:
    """No such leaf, a leaf on another machine, none that was stopped, no token, no such deed."""

    async def body(page: Page) -> None:
        answer = await page.ask(leaf, do)
        assert answer.status == status
        assert answer.body
        assert page.signalled == []
        assert page.trouble.described() == {"deeds": ["stop", "kill"], "slowed": [], "stopped": []}

    pressed(monkeypatch, body)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"leaf": 1}', 400), (b" " * (BODY_BYTES_MAX + 1), 413)],
)
def test_a_body_that_is_no_order_is_refused(
    monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    """400, and 413 for one that is too long."""

    async def ask(page: Page) -> None:
        assert (await page.ask("", "", body=body)).status == status

    pressed(monkeypatch, ask)


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_no_group_of_processes_is_signalled(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    """Whatever a leaf says that it is."""

    async def body(page: Page) -> None:
        page.fleet.channels[HERE].hello = hello(pid)
        assert (await page.ask(HERE, "kill")).status == 409
        assert page.signalled == []

    pressed(monkeypatch, body)


def test_a_process_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """409, and the leaf does not count as stopped."""

    async def body(page: Page) -> None:
        def gone(pid: int, number: signal.Signals) -> None:
            raise ProcessLookupError

        monkeypatch.setattr("os.kill", gone)
        assert (await page.ask(HERE, "stop")).status == 409
        assert page.trouble.described()["stopped"] == []

    pressed(monkeypatch, body)


class SlowableLeaf:
    """The interference route of a leaf."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self._status = status

    async def answer(self, request: web.Request) -> web.Response:
        """Note what came."""
        token = request.headers.get("authorization", "")
        self.asked.append((request.method, token, await request.read()))
        return web.json_response({}, status=self._status)

    async def serve(self, body: Callable[[Page], Awaitable[None]]) -> None:
        """Run a body with a page that knows this leaf."""
        app = web.Application()
        app.router.add_route("*", "/interference", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            await body(Page(TOKEN, f"http://127.0.0.1:{port}"))
        finally:
            await runner.cleanup()


def test_a_leaf_is_slowed_by_itself() -> None:
    """Its own interference route is given the plan and the token, and told to end it."""
    leaf = SlowableLeaf()

    async def body(page: Page) -> None:
        url = next(iter(page.fleet.channels))
        assert page.trouble.described()["deeds"] == ["slow", "stop", "kill"]
        assert (await page.ask(url, "slow")).json["slowed"] == [url]
        assert (await page.ask(url, "quicken")).json["slowed"] == []
        bearer = f"Bearer {TOKEN}"
        assert leaf.asked == [("PUT", bearer, SLOW_PLAN), ("DELETE", bearer, b"")]

    asyncio.run(leaf.serve(body))


def test_a_leaf_that_refuses_to_be_slowed_is_not_slow() -> None:
    """409 with the leaf's status."""
    leaf = SlowableLeaf(403)

    async def body(page: Page) -> None:
        answer = await page.ask(next(iter(page.fleet.channels)), "slow")
        assert (answer.status, b"403" in answer.body) == (409, True)
        assert page.trouble.described()["slowed"] == []

    asyncio.run(leaf.serve(body))


def test_a_leaf_that_does_not_answer_is_said() -> None:
    """409, not an error of the root."""

    async def main() -> None:
        page = Page(TOKEN)
        assert (await page.ask(HERE, "slow")).status == 409

    asyncio.run(main())


def test_the_plan_is_one_that_leaves_understand() -> None:
    """It is read as a leaf reads it."""
    plan: Any = msgspec.convert(orjson.loads(SLOW_PLAN), Plan)
    assert len(plan.rules) == 1


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("", False),
        (None, False),
    ],
)
def test_what_a_loopback_host_is(host: str | None, is_one: bool) -> None:
    """By name or number; a name of somebody else's is none, whatever it points to."""
    assert is_loopback(host) is is_one
