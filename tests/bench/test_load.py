"""Load on an HTTP address: what is planned, what becomes of it, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner
from rich.console import Console

from bench import script
from bench.__main__ import main
from bench.experiments import load
from bench.experiments.load import Plan, Result, Window, fate_of, planned
from bench.recorder import Recorder
from bench.script import Line
from bench.workload import Schedule

NOBODY = "http://127.0.0.1:1/"

COMPLETE = b'{"hits": [], "coverage": {"complete": true}}'
PARTIAL = b'{"hits": [], "coverage": {"complete": false}}'


@contextlib.asynccontextmanager
async def serving(handler: web.Handler) -> AsyncIterator[str]:  # type: ignore[name-defined]
    """An address of this machine whose every answer ``handler`` gives."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_queries_take_turns_in_address_and_body() -> None:
    """Quoted for the one, escaped for the other."""
    schedule = Schedule((0.0, 0.5, 1.0))
    queries = ["a b", 'say "hi"']
    assert [line.path for line in planned(schedule, "/search?q={q}", None, queries)] == [
        *("/search?q=a%20b", "/search?q=say%20%22hi%22", "/search?q=a%20b")
    ]
    lines = planned(schedule, "/search", '{"q": "{q}"}', queries)
    assert [line.body for line in lines[:2]] == ['{"q": "a b"}', '{"q": "say \\"hi\\""}']
    assert [line.method for line in lines] == ["POST"] * 3
    assert [(line.method, line.at_s) for line in planned(schedule, "/")][1] == ("GET", 0.5)


@pytest.mark.parametrize(
    ("status", "body", "fate"),
    [
        (200, COMPLETE, "complete"),
        (200, PARTIAL, "partial"),
        (200, b"<html>", "complete"),
        (200, b'{"coverage": 0.7}', "complete"),
        (204, b"", "complete"),
        (400, b"", "error"),
        (429, b"", "refused"),
        (500, b"", "error"),
        (503, b"", "refused"),
        (504, PARTIAL, "timeout"),
    ],
)
def test_a_status_is_a_fate(status: int, body: bytes, fate: str) -> None:
    """And an answer of ours that lacks a part is partial."""
    assert fate_of(status, body) == fate


def test_every_request_is_sent_and_counted() -> None:
    """Methods and bodies as planned; every status and every broken connection has its number."""
    got: list[tuple[str, str, bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        got.append((request.method, request.path_qs, await request.read()))
        if request.path == "/gone" and request.transport is not None:
            request.transport.close()
        return web.Response(status=429 if request.path == "/busy" else 200, body=PARTIAL)

    async def body() -> Result:
        lines = [
            Line(0.0, "GET", "/a?b=c"),
            Line(0.0, "POST", "/d", '{"e": 1}'),
            Line(0.01, "GET", "/busy"),
            Line(0.01, "GET", "/gone"),
        ]
        async with serving(handler) as url:
            return await load.run(Plan(url, lines))

    result = asyncio.run(body())
    assert sorted(got[:2]) == [("GET", "/a?b=c", b""), ("POST", "/d", b'{"e": 1}')]
    assert result.statuses == {"200": 2, "429": 1, "ServerDisconnectedError": 1}
    assert result.summary.fates == {"error": 1, "partial": 2, "refused": 1}
    assert sum(window.requests for window in result.windows) == 4


def test_a_run_is_told_in_figures_and_drawn(tmp_path: Path) -> None:
    """Percentiles with intervals, what requests ended with, what was not sent, the lag."""
    recorder = Recorder()
    for number in range(1, 31):
        recorder.record("complete", number / 1000)
    recorder.record_unsent()
    recorder.record_lag(0.005)
    windows = [Window(0.0, 30, 15.0, 30.0), Window(1.0, 0, 0.0, 0.0)]
    result = Result(NOBODY, {"200": 30}, recorder.summary(), windows, recorder.curve_ms())
    out = io.StringIO()
    load.show(result, Console(file=out, width=120))
    assert "ended with 30 200: 30 complete" in out.getvalue()
    assert "1 not sent" in out.getvalue()
    assert "p99.9" in out.getvalue()
    assert "INVALID" in out.getvalue()
    load.draw(result, tmp_path / "load.png", "caption")
    assert (tmp_path / "load.png").stat().st_size > 10_000


# --- the command --------------------------------------------------------------------------


def said(*options: str) -> str:
    """What the command complains of, in one line."""
    done = CliRunner().invoke(main, ["load", *options])
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["ftp://x/"], "'URL': ftp://x/ is not an address"),
        (["http://x:99999/"], "'URL': http://x:99999/: Port out of range"),
        ([NOBODY, "--rate", "0"], "'--rate'"),
        ([NOBODY, "--seconds", "-1"], "'--seconds'"),
        ([NOBODY, "--ramp", "5:50"], "'--ramp': 5:50 is not FROM:TO:SECONDS"),
        ([NOBODY, "--ramp", "5:50:x"], "'--ramp': 5:50:x is not"),
        ([NOBODY, "--ramp", "0:0:5"], "'--ramp': 0:0:5 is not"),
        ([NOBODY, "--ramp", "5:50:30", "--seconds", "20"], "--ramp: a ramp of 30 s does not fit"),
        ([NOBODY, "--rate", "100000", "--seconds", "86400"], "--seconds: more than 5,000,000"),
        ([NOBODY, "--rate", "0.001", "--seconds", "0.1"], "--seconds: no request in so short"),
        ([NOBODY, "--arrivals", "all"], "'--arrivals'"),
        ([NOBODY + "?q={q}"], "--queries: {q} in URL or --body stands for"),
        ([NOBODY, "--queries", "/nowhere"], "'--queries'"),
        ([NOBODY, "--in-flight", "0"], "'--in-flight'"),
        ([NOBODY, "--replay", "/nowhere"], "'--replay'"),
        ([NOBODY, "--record", "/nowhere/x"], "'--record'"),
        ([NOBODY], "nobody answers at 127.0.0.1:1 (connection refused): start what is to be"),
    ],
)
def test_bad_input_names_the_option(options: list[str], complaint: str) -> None:
    """One sentence and exit code 2, before anything is sent."""
    assert complaint in said(*options)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "has no line"), ("\n \n", "has no line"), ("a", "neither URL nor --body has {q}")],
)
def test_queries_that_would_not_be_asked_are_refused(
    text: str, complaint: str, tmp_path: Path
) -> None:
    """None there, or nowhere to put them."""
    path = tmp_path / "queries"
    path.write_text(text, encoding="utf-8")
    assert complaint in said(NOBODY, "--queries", str(path))


def test_queries_are_text(tmp_path: Path) -> None:
    """Bytes that are none are refused."""
    path = tmp_path / "queries"
    path.write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in said(NOBODY + "?q={q}", "--queries", str(path))


def test_a_replay_decides_alone(tmp_path: Path) -> None:
    """What is asked for beside it would not happen, and is refused; so is a broken script."""
    path = tmp_path / "run.jsonl"
    script.write(path, [Line(0.0, "GET", "/")])
    assert "--replay: what is replayed decides that: leave --rate out" in said(
        *(NOBODY, "--replay", str(path), "--rate", "5")
    )
    path.write_text("x", encoding="utf-8")
    assert "line 1: JSON is malformed" in said(NOBODY, "--replay", str(path))


def test_a_run_is_recorded_before_it_begins(tmp_path: Path) -> None:
    """A ramp, then the rate; the same seed writes the same script."""
    scripts = []
    for name in ("one", "two"):
        path = tmp_path / name
        options = ["--ramp", "5:50:30", "--rate", "50", "--seconds", "60", "--record", str(path)]
        assert "nobody answers" in said(NOBODY + "x?y=z", *options)
        scripts.append(script.read(path))
    assert scripts[0] == scripts[1]
    assert len(scripts[0]) == pytest.approx(825 + 1500, rel=0.1)
    assert {line.path for line in scripts[0]} == {"/x?y=z"}
