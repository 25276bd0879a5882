"""The command ``hedgerow``: search, explain an answer, and watch a root, in a terminal.

Ends with 0 after an answer, with 1 where none came, with 2 where the request was at fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn, TypeVar

import click
import msgspec
from rich.console import Console, Group
from rich.live import Live

from root import terminal
from root.bodies import SearchAnswer
from root.client import AtFault, Client, ClientError

URL: Final = "http://127.0.0.1:8080"
EVERY_S: Final = 1.0
"""As often as a root looks at its counters."""

NO_ANSWER: Final = 1
AT_FAULT: Final = 2

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def _url_option(command: CommandT) -> CommandT:
    return click.option("--url", default=URL, show_default=True, help="The root to ask.")(command)


def _query_options(command: CommandT) -> CommandT:
    named = click.option("-k", "--hits", "k", default=10, show_default=True, help="Hits wanted.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as it came.")
    return click.argument("query")(_url_option(named(as_json(command))))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Ask a root of Hedgerow."""


@main.command("search")
@_query_options
def search_command(query: str, url: str, k: int, as_json: bool) -> None:
    """Search for QUERY, as on the page."""
    with _asking(url) as client:
        found = client.search(query, k=k)
    _show(found, as_json, terminal.answer(found))


@main.command("explain")
@_query_options
def explain_command(query: str, url: str, k: int, as_json: bool) -> None:
    """Search for QUERY, and say why each hit stands where it does, and who was asked when."""
    with _asking(url) as client:
        found = client.search(query, k=k, explain=True, trace=True)
    phases = () if found.trace is msgspec.UNSET else found.trace
    race = terminal.race(phases)
    _show(found, as_json, Group(terminal.explained(found), race, terminal.summary(found)))


@main.command("top")
@_url_option
@click.option("--once", is_flag=True, help="Print one snapshot and end.")
def top_command(url: str, once: bool) -> None:
    """Watch the last minute of a root."""
    console = Console()
    with _asking(url) as client:
        if once:
            console.print(terminal.live(client.live()))
            return
        with suppress(KeyboardInterrupt), Live(console=console, screen=True) as view:
            while True:
                view.update(terminal.live(client.live()), refresh=True)
                time.sleep(EVERY_S)


@contextmanager
def _asking(url: str) -> Iterator[Client]:
    """A client of the root; what goes wrong is one sentence and an exit code."""
    try:
        client = Client(url)
    except ValueError as error:
        _end(str(error), AT_FAULT)
    try:
        with client:
            yield client
    except AtFault as error:
        _end(str(error), AT_FAULT)
    except ClientError as error:
        _end(f"{url}: {error}", NO_ANSWER)


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(f"hedgerow: {terminal.printable(sentence)}", err=True)
    raise SystemExit(code)


def _show(found: SearchAnswer, as_json: bool, otherwise: Any) -> None:
    if as_json:
        click.echo(msgspec.json.encode(found))
    else:
        Console(highlight=False).print(otherwise)
