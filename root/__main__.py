"""``python -m root``: the only place where the root is wired."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import uvicorn
import uvloop

from leaf.logs import set_up
from leaf.pulse import Pulse, watched
from root import tracing
from root.app import Root
from root.budget import BURST_MIN, BURST_QUERIES, BudgetTerms
from root.clock import PreciseLoop
from root.config import POLICIES, Settings
from root.discovery import LEAVES_MAX, Fleet
from root.errors import OperatorError
from root.trouble import Trouble, is_loopback

if TYPE_CHECKING:
    from root.spans import Spans

SHUTDOWN_S = 1
"""Answers in work get this long after a signal; everything must be gone in three seconds."""

PARENT_LOOK_S = 0.5

BACKLOG = 2048
"""Connections that may wait to be accepted: a burst of clients, not a reason to refuse."""

_DEFAULTS = Settings()


@click.command(context_settings={"show_default": True, "help_option_names": ["-h", "--help"]})
@click.option("--leaf", "leaves", multiple=True, required=True, help="A leaf's URL; repeat it.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--name", default="root", help="What leaves and logs call this root.")
@click.option("--timeout-ms", default=_DEFAULTS.timeout_ms, help="For requests that name none.")
@click.option("--min-coverage", default=_DEFAULTS.min_coverage, help="Share of documents needed.")
@click.option("--hedge", default=_DEFAULTS.hedge, help=f"When an attempt is late: {POLICIES}.")
@click.option("--hedge-delay-ms", default=_DEFAULTS.hedge_delay_ms, help="Of the policy fixed.")
@click.option("--hedge-quantile", default=_DEFAULTS.hedge_quantile, help="Of the policy quantile.")
@click.option("--hedge-quorum", default=_DEFAULTS.hedge_quorum, help="Of the policy sibling.")
@click.option("--hedge-factor", default=_DEFAULTS.hedge_factor, help="Of the policy sibling.")
@click.option(
    "--max-extra-load", default=_DEFAULTS.budget.max_extra_load, help="Share of extra legs."
)
@click.option("--budget-floor", default=_DEFAULTS.budget.floor_per_s, help="Extra legs a second.")
@click.option(
    "--budget-burst",
    type=float,
    default=_DEFAULTS.budget.burst,
    help="Extra legs that can be saved up.",
    show_default=f"{BURST_QUERIES} x shards, at least {BURST_MIN:g}",
)
@click.option("--max-attempts", default=_DEFAULTS.attempts_max, help="Attempts a leg may cost.")
@click.option("--max-in-flight", default=_DEFAULTS.in_flight_max, help="Requests at once.")
@click.option(
    "--canary/--no-canary", default=_DEFAULTS.canary, help="Try unknown queries on one leaf first."
)
@click.option(
    "--slow-queries", default=_DEFAULTS.slow_queries, help="Kept of the slowest of each minute."
)
@click.option(
    "--blocked-ms", default=_DEFAULTS.blocked_ms, help="An event loop later than this is logged."
)
@click.option(
    "--watch/--no-watch", default=_DEFAULTS.watch, help="Count and keep what operators look at."
)
@click.option("--seed", default=_DEFAULTS.seed, help="Of the choice between replicas.")
@click.option(
    "--end-with-parent", is_flag=True, help="End when the process that started this one does."
)
@click.option(
    "--trouble-buttons",
    is_flag=True,
    help="Let the page slow, stop and kill leaves; loopback only.",
)
@click.option("--log-level", default="info", type=click.Choice(["debug", "info", "warning"]))
@click.option(
    "--log-format",
    default="text",
    type=click.Choice(["text", "json"]),
    help="Lines for people, or JSON for machines.",
)
@click.option(
    "--spans",
    default="none",
    type=click.Choice(["none", "otlp"]),
    help="Where to send a span an attempt.",
)
def main(**options: Any) -> None:
    """Split queries over leaves, hedge the slow ones, merge the answers."""
    set_up(
        options["name"],
        options["log_level"],
        options["log_format"],
        tracing.known,
        text="%(levelname)s %(name)s: %(message)s",
    )
    try:
        settings = _settings(options)
        urls = _urls(options["leaves"])
        _check_trouble(options)
        _check_spans(options["spans"])
        listening = _listen(options["host"], options["port"])
    except OperatorError as error:
        click.echo(f"root: {error}", err=True)
        sys.exit(2)
    with listening:
        serving = _serve(urls, settings, listening, options)
        uvloop.run(serving, loop_factory=PreciseLoop)


async def _serve(
    urls: list[str], settings: Settings, listening: socket.socket, options: dict[str, Any]
) -> None:
    host, port = listening.getsockname()[:2]
    pulse = Pulse(settings.blocked_ms)
    fleet = Fleet(urls, settings.name)
    token = os.environ.get("HEDGEROW_ADMIN_TOKEN", "")
    trouble = Trouble(fleet, token) if options["trouble_buttons"] else None
    root = Root(fleet, settings, lambda fleet: _announce(fleet, host, port), pulse, trouble)
    spans = _spans(options["spans"], settings.name)
    if spans is not None:
        root.searches.watchers.append(spans.note)
    config = uvicorn.Config(
        root.app(),
        log_level="warning",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    server = _Server(config, root)
    server.obey_signals()
    watching = None
    if options["end_with_parent"]:
        watching = asyncio.create_task(_watch_parent(server))
    with watched(pulse) if settings.watch else nullcontext():
        await server.serve(sockets=[listening])
    if watching is not None:
        watching.cancel()
    if spans is not None:
        spans.close()


def _spans(where: str, name: str) -> Spans | None:
    if where == "none":
        return None
    # Imported here: the package behind it is not needed otherwise, and may not be there.
    from root.spans import exported  # noqa: PLC0415

    return exported(name, time.time() - asyncio.get_running_loop().time())


def _check_spans(where: str) -> None:
    """Raise OperatorError where spans are asked for and cannot be written."""
    if where != "none" and find_spec("opentelemetry.exporter") is None:
        raise OperatorError(f"--spans {where} needs a package: pip install 'hedgerow[otel]'")


class _Server(uvicorn.Server):
    """Sends those away who watch before it waits for answers in work, and ends without a word."""

    def __init__(self, config: uvicorn.Config, root: Root) -> None:
        super().__init__(config)
        self._root = root

    def obey_signals(self) -> None:
        """End by a signal as by any other reason. While the library serves it has handlers of its
        own, and afterwards raises again what it caught: by then the end has been clean.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told_to_end)

    def _told_to_end(self, *_: object) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As the library's."""
        self._root.fleet.leave()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As the library's."""
        self._root.viewers.end()
        await super().shutdown(sockets)


async def _watch_parent(server: uvicorn.Server) -> None:
    """End the server when its parent is gone: a closed terminal takes honcho, and tells nobody."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 (the system has no event for it)
        await asyncio.sleep(PARENT_LOOK_S)
    server.should_exit = True


def _announce(fleet: Fleet, host: str, port: int) -> None:
    view = fleet.view()
    assert view is not None  # noqa: S101 (announced when it is there)
    base = f"http://{host}:{port}"
    sample = "signature" in {field.name for field in view.card.fields}
    click.echo(
        f"Hedgerow is ready: {view.documents:,} documents in {len(view.replicas)} shards on "
        f"{len(fleet.channels)} leaves at {base}\n"
        f"Open {base} in a browser\n"
        f"Try: curl '{base}/search?q={'parse+json' if sample else 'one+or+more+words'}'"
    )


OPTION_OF = {
    "floor_per_s": "--budget-floor",
    "burst": "--budget-burst",
    "attempts_max": "--max-attempts",
    "in_flight_max": "--max-in-flight",
}
"""Settings whose option is not named like them."""


def _settings(options: dict[str, Any]) -> Settings:
    """Return the settings; OperatorError, by the option's name, where one is out of range."""
    try:
        return _unchecked_settings(options)
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        option = OPTION_OF.get(name, "--" + name.replace("_", "-"))
        raise OperatorError(f"{option} {rest}") from None


def _unchecked_settings(options: dict[str, Any]) -> Settings:
    return Settings(
        name=options["name"],
        timeout_ms=options["timeout_ms"],
        min_coverage=options["min_coverage"],
        hedge=options["hedge"],
        hedge_delay_ms=options["hedge_delay_ms"],
        hedge_quantile=options["hedge_quantile"],
        hedge_quorum=options["hedge_quorum"],
        hedge_factor=options["hedge_factor"],
        attempts_max=options["max_attempts"],
        budget=BudgetTerms(
            options["max_extra_load"], options["budget_floor"], options["budget_burst"]
        ),
        in_flight_max=options["max_in_flight"],
        canary=options["canary"],
        slow_queries=options["slow_queries"],
        blocked_ms=options["blocked_ms"],
        watch=options["watch"],
        seed=options["seed"],
    )


def _urls(leaves: tuple[str, ...]) -> list[str]:
    if len(leaves) > LEAVES_MAX:
        raise OperatorError(f"{len(leaves)} leaves are too many for one root, most {LEAVES_MAX}")
    urls = []
    for leaf in leaves:
        if not _is_address(leaf):
            raise OperatorError(f"--leaf {leaf!r} is not a URL like http://127.0.0.1:8081")
        url = leaf.rstrip("/")
        if url in urls:
            raise OperatorError(f"--leaf {leaf} is given twice")
        urls.append(url)
    return urls


def _check_trouble(options: dict[str, Any]) -> None:
    """Whoever reaches the page could end leaves: it must be nobody but the people here."""
    host = options["host"]
    if options["trouble_buttons"] and not is_loopback(host):
        raise OperatorError(f"--trouble-buttons needs a --host of this machine alone, not {host}")


def _is_address(url: str) -> bool:
    """Whether it names a scheme, a host and perhaps a port, and nothing that would be ignored."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    rest = (parts.path.rstrip("/"), parts.query, parts.fragment)
    return (
        parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and not any(rest)
    )


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; OperatorError where the address cannot be had."""
    try:
        return socket.create_server((host, port), backlog=BACKLOG, reuse_port=False)
    except OSError as error:
        why = (
            "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        )
        raise OperatorError(f"port {port} on {host} {why}") from None


if __name__ == "__main__":
    main()
