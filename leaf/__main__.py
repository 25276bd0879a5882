"""``python -m leaf``: serve some shards of an index. Everything is wired here."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final, cast

import click
import uvicorn
from starlette.applications import Starlette

from leaf.admin import InterferenceRoute, Switch
from leaf.admission import AdmissionQueue
from leaf.app import create_app
from leaf.asks import Task
from leaf.background import GARBAGE_MAX, Background
from leaf.canned import NOTICE, CannedSupply
from leaf.config import Config, Place, read_indexes, read_token
from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration, Supply
from leaf.injection import InjectingWorkers
from leaf.logs import Format, set_up
from leaf.peers import Peers
from leaf.plans import SeededPlan, load
from leaf.pulse import BLOCKED_MS, watched
from leaf.service import Leaf
from leaf.wire import Wire
from leaf.workers import Workers

log = logging.getLogger("leaf")

EXIT_BAD_INPUT: Final = 2

SWITCH_INTERVAL_S: Final = 0.0005
"""How long a thread in Python may keep the others waiting. The default of 5 ms would be the
least time in which the event loop hears a cancel while a worker computes; shorter than this,
switching costs more than the legs."""

CLOSING_S: Final = 1
"""How long open connections are waited for at the end."""

LAST_LEG_S: Final = 0.2
"""How long workers get for what they have in hand at the end; it is one leg each."""

BACKLOG: Final = 1024


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="[NAME=]DIR",
    help="Folder of a built index, and the collection that it is; repeat it for more.",
)
@click.option("--canned", type=int, help="Serve this many shards of constant answers instead.")
@click.option("--ordinal", type=int, required=True, help="Which leaf this is, from 0.")
@click.option("--of", "leaves", type=int, required=True, help="How many leaves there are.")
@click.option("--replicas", type=int, default=1, help="On how many leaves each shard is.")
@click.option("--port", type=int, required=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--workers",
    type=int,
    default=os.cpu_count() or 1,
    envvar="HEDGEROW_LEAF_WORKERS",
    help="Threads that search.",
)
@click.option(
    "--queue-legs",
    type=int,
    default=Config.__dataclass_fields__["queue_legs"].default,
    envvar="HEDGEROW_LEAF_QUEUE_LEGS",
    help="Legs that may wait; more are refused as busy.",
)
@click.option(
    "--domain",
    default="",
    envvar="HEDGEROW_LEAF_DOMAIN",
    help="What fails together with this leaf; its own name unless given.",
)
@click.option(
    "--generations",
    type=int,
    default=Config.__dataclass_fields__["generations"].default,
    envvar="HEDGEROW_LEAF_GENERATIONS",
    help="How many of the newest generations are opened at the start.",
)
@click.option(
    "--background",
    type=click.Choice(["free", "in-step"]),
    default="free",
    envvar="HEDGEROW_LEAF_BACKGROUND",
    help="When to reload, collect garbage and let go: whenever, or with all other leaves.",
)
@click.option("--name", default="", help="Name of this leaf; leaf<ordinal> unless given.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="HEDGEROW_LEAF_LOG_FORMAT",
    help="Lines for people, or JSON for machines.",
)
@click.option(
    "--blocked-ms",
    type=float,
    default=BLOCKED_MS,
    envvar="HEDGEROW_LEAF_BLOCKED_MS",
    help="An event loop later than this is logged.",
)
@click.option(
    "--watch/--no-watch",
    default=True,
    envvar="HEDGEROW_LEAF_WATCH",
    help="Count and time what operators look at.",
)
@click.option(
    "--interference",
    default="",
    envvar="HEDGEROW_INTERFERENCE",
    help="Inject trouble: the name of a profile, or a file.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    envvar="HEDGEROW_INTERFERENCE_SEED",
    help="Decides what injected trouble strikes.",
)
@click.option(
    "--admin-token-file",
    type=click.Path(path_type=Path),
    help="Lets who has the token in this file inject trouble at run time.",
)
def main(  # noqa: D103 - click shows a docstring to users
    *,
    indexes: tuple[str, ...],
    canned: int | None,
    ordinal: int,
    leaves: int,
    replicas: int,
    port: int,
    host: str,
    workers: int,
    queue_legs: int,
    domain: str,
    generations: int,
    background: str,
    name: str,
    log_format: Format,
    blocked_ms: float,
    watch: bool,
    interference: str,
    seed: int,
    admin_token_file: Path | None,
) -> None:
    try:
        plan = load(interference) if interference else None
        config = Config(
            place=Place(ordinal=ordinal, leaves=leaves, replicas=replicas),
            indexes=read_indexes(indexes),
            canned=canned,
            port=port,
            host=host,
            workers=workers,
            queue_legs=queue_legs,
            domain=domain,
            generations=generations,
            in_step=background == "in-step",
            name=name,
            log_format=log_format,
            blocked_ms=blocked_ms,
            watch=watch,
            interference=SeededPlan(interference, plan, seed) if plan else None,
            seed=seed,
            admin_token=read_token(admin_token_file, os.environ.get("HEDGEROW_ADMIN_TOKEN", "")),
        )
        with bind(config.host, config.port) as listener:
            serve(config, listener, supply_of(config))
    except BadSetting as error:
        click.echo(f"leaf: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the port: before anything is loaded. Raises BadSetting."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # A second leaf on the port could bind beside this one until somebody listens.
            listener.listen(BACKLOG)
            on_failure.pop_all()
    except OSError as error:
        raise BadSetting(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return listener


def supply_of(config: Config) -> Supply:
    """Return where generations come from, checked as far as is quick. Raises BadSetting."""
    if config.canned is not None:
        return CannedSupply(config.canned, config.place)
    # Imported here: a leaf of canned answers, and one with a bad setting, need no search
    # library.
    from leaf.supply import IndexSupply, Supplies  # noqa: PLC0415

    supplies = Supplies(
        [
            IndexSupply(folder, config.place, config.generations, name)
            for name, folder in config.indexes.items()
        ]
    )
    supplies.check()
    return supplies


def serve(config: Config, listener: socket.socket, supply: Supply) -> None:
    """Run the leaf until it is told to end. Raises BadSetting."""
    text = f"{config.name} %(levelname)s %(message)s"
    set_up(config.name, "info", config.log_format, text=text)
    # It would tell of every connection that it is open, and later that it is closed.
    logging.getLogger("websockets").setLevel(logging.WARNING)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    clock = time.monotonic
    queue: AdmissionQueue[Task] = AdmissionQueue(workers=config.workers, legs_max=config.queue_legs)
    # Any other leaf has the plain workers, and no trace of trouble on the way of its legs.
    injecting = InjectingWorkers(queue, clock) if may_be_troubled(config) else None
    workers = injecting or Workers(queue, clock)
    leaf = Leaf(
        name=config.name,
        domain=config.domain,
        workers=workers,
        clock=clock,
        notice=NOTICE if config.canned is not None else "",
        blocked_ms=config.blocked_ms,
        watch=config.watch,
        place=config.place,
        collections=config.collections,
    )
    if leaf.notice:
        log.warning(leaf.notice)
    route = None
    if injecting is not None:
        switch = Switch(leaf, injecting, config.place.ordinal)
        if config.interference is not None:
            switch.turn_on(config.interference)
        if config.admin_token:
            route = InterferenceRoute(switch, config.admin_token, config.seed)
    if config.in_step:
        gc.set_threshold(GARBAGE_MAX)
    process = Process(leaf, supply, route, in_step=config.in_step)
    process.run(listener)
    # The port is free from here on; a worker in the middle of a search, which cannot be
    # interrupted, does not hold up the end of the process.
    if not workers.stop(LAST_LEG_S):
        log.warning("ending with work in hand")
        sys.stderr.flush()
        os._exit(0)


def may_be_troubled(config: Config) -> bool:
    """Whether the leaf is to meet injected trouble, now or when it is told to."""
    return config.interference is not None or bool(config.admin_token)


class OnLoop:
    """The leaf for its background work: what that finds goes to the event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, leaf: Leaf, fail: Callable[[BadSetting], None]
    ) -> None:
        self._loop = loop
        self._leaf = leaf
        self.fail = fail

    def held(self) -> Mapping[str, HeldGeneration]:
        """Return what is held at this moment, by name."""
        return self._leaf.holdings.by_name()

    def hold(self, generation: HeldGeneration) -> None:
        """Have this generation held, or replace the one of its name."""
        self._post(lambda: self._leaf.hold(generation))

    def let_go(self) -> None:
        """Have what nobody needs here let go of."""
        self._post(self._leaf.let_go)

    def _post(self, order: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(order)


class Process:
    """The server of one leaf, with the end that signals ask for."""

    def __init__(
        self,
        leaf: Leaf,
        supply: Supply,
        interference: InterferenceRoute | None = None,
        *,
        in_step: bool = False,
    ) -> None:
        self._leaf = leaf
        self._supply = supply
        self._in_step = in_step
        self._failure: BadSetting | None = None
        self._server = uvicorn.Server(
            uvicorn.Config(
                create_app(leaf, self._lifespan, interference),
                loop="uvloop",
                # The server calls it, by keywords, as it would call a class.
                ws=cast("type[asyncio.Protocol]", partial(Wire, leaf)),
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=CLOSING_S,
            )
        )

    def run(self, listener: socket.socket) -> None:
        """Serve until a signal, or until the index turns out to be unusable: BadSetting."""
        # The server puts handlers of its own in place while it runs, and afterwards raises
        # again what it caught: by then the end has been clean, and is no death by a signal.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end())
        self._server.run(sockets=[listener])
        if self._failure is not None:
            raise self._failure

    def _end(self) -> None:
        self._server.should_exit = True

    def _fail(self, error: BadSetting) -> None:
        self._failure = error
        self._end()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        keeping = OnLoop(asyncio.get_running_loop(), self._leaf, self._fail)
        background = Background(self._supply, keeping, in_step=self._in_step)
        peers = Peers(self._leaf.name, self._leaf.ledger)
        self._leaf.workers.tell(peers.began)
        self._leaf.workers.start()
        background.start()
        beat = asyncio.create_task(self._leaf.beat())
        try:
            with watched(self._leaf.pulse) if self._leaf.watched else nullcontext():
                yield
        finally:
            beat.cancel()
            background.stop()
            await peers.close()


if __name__ == "__main__":
    main()
