"""``python -m root``: a wrong setting is one clear sentence and exit code 2."""

from __future__ import annotations

import re
import socket

import pytest
from click.testing import CliRunner, Result

from root.__main__ import main
from root.discovery import LEAVES_MAX

LEAF = "--leaf=http://127.0.0.1:9"


def started_with(*arguments: str) -> Result:
    """What comes of a command line; it cannot get as far as serving, for want of a port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        return CliRunner().invoke(main, [f"--port={port}", *arguments])


def test_a_root_needs_a_leaf() -> None:
    """Without any address there is nothing to start."""
    result = started_with()
    assert result.exit_code == 2
    assert "--leaf" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--timeout-ms=0"], "--timeout-ms must be from 1 to 60000, not 0"),
        (["--timeout-ms=nan"], "--timeout-ms must be from 1 to 60000, not nan"),
        (["--min-coverage=1.1"], "--min-coverage must be from 0 to 1, not 1.1"),
        (
            ["--hedge=magic"],
            (
                "--hedge must be off, shadow, fixed, quantile, sibling, adaptive, together "
                "or tied, not 'magic'"
            ),
        ),
        (["--hedge-delay-ms=-1"], "--hedge-delay-ms must be from 0 to 60000, not -1"),
        (["--hedge-quantile=1"], "--hedge-quantile must lie between 0 and 1, not 1.0"),
        (
            ["--hedge=off", "--hedge-quantile=2"],
            "--hedge-quantile must lie between 0 and 1, not 2.0",
        ),
        (["--hedge-quorum=0"], "--hedge-quorum must lie between 0 and 1, not 0.0"),
        (["--hedge-factor=0.5"], "--hedge-factor must be from 1 to 1000, not 0.5"),
        (["--max-extra-load=1.5"], "--max-extra-load must be from 0 to 1, not 1.5"),
        (["--budget-floor=-1"], "--budget-floor must be from 0 to 1000, not -1.0"),
        (["--budget-burst=-1"], "--budget-burst must be from 0 to 100000, not -1.0"),
        (["--max-attempts=0"], "--max-attempts must be from 1 to 10, not 0"),
        (
            ["--trouble-buttons", "--host=0.0.0.0"],
            "--trouble-buttons needs a --host of this machine alone, not 0.0.0.0",
        ),
        (["--max-in-flight=0"], "--max-in-flight must be from 1 to 100000, not 0"),
    ],
)
def test_a_setting_out_of_range_is_named(arguments: list[str], sentence: str) -> None:
    """The sentence says which, what is possible, and what was given."""
    result = started_with(LEAF, *arguments)
    assert (result.exit_code, result.stderr) == (2, f"root: {sentence}\n")


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8081",
        "ws://127.0.0.1:8081",
        "http://",
        "http://[::1",
        "http://127.0.0.1:port",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:8081/path",
        "http://127.0.0.1:8081?a=b",
        "",
    ],
)
def test_a_leaf_that_is_no_address_is_named(url: str) -> None:
    """It would never be reached, so the root does not start."""
    result = started_with(f"--leaf={url}")
    sentence = f"root: --leaf {url!r} is not a URL like http://127.0.0.1:8081\n"
    assert (result.exit_code, result.stderr) == (2, sentence)


def test_a_leaf_is_given_once() -> None:
    """Twice the same address, with or without a slash, is a slip."""
    result = started_with(LEAF, f"{LEAF}/")
    assert (result.exit_code, result.stderr) == (
        2,
        "root: --leaf http://127.0.0.1:9/ is given twice\n",
    )


def test_more_leaves_than_a_root_carries_are_refused() -> None:
    """The sentence says how many it would carry."""
    result = started_with(*(f"--leaf=http://leaf-{i}:80" for i in range(LEAVES_MAX + 1)))
    assert result.exit_code == 2
    assert str(LEAVES_MAX) in result.stderr


@pytest.mark.parametrize("argument", ["--port=0", "--port=http", "--replicas=2", "search"])
def test_a_wrong_argument_is_named(argument: str) -> None:
    """Click says which one."""
    result = started_with(LEAF, argument)
    assert result.exit_code == 2
    assert argument.split("=", maxsplit=1)[0] in result.stderr


def test_a_port_in_use_is_named() -> None:
    """Not a traceback."""
    result = started_with(LEAF)
    assert result.exit_code == 2
    assert re.fullmatch(r"root: port \d+ on 127\.0\.0\.1 is in use\n", result.stderr)


def test_a_host_that_is_not_here_is_named() -> None:
    """An address of another machine cannot be listened on."""
    result = started_with(LEAF, "--host=192.0.2.1", "--port=18399")
    assert result.exit_code == 2
    assert result.stderr.startswith("root: port 18399 on 192.0.2.1 cannot be used")
    assert result.stderr.count("\n") == 1
