"""The command: bad input is one sentence and exit code 2, before anything is loaded."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from leaf.__main__ import bind, main, may_be_troubled
from leaf.config import Config, Place
from leaf.errors import BadSetting
from leaf.plans import SeededPlan, profile

ONE = ["--ordinal", "0", "--of", "1", "--port"]


@pytest.fixture(name="port_in_use")
def port_in_use_fixture() -> Iterator[int]:
    """A port that somebody listens on until the test is over."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.fixture(name="free_port")
def free_port_fixture() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def test_a_port_in_use_is_said(port_in_use: int) -> None:
    """The port is tried before anything is loaded."""
    ran = CliRunner().invoke(main, ["--canned", "4", *ONE, str(port_in_use)])
    assert ran.exit_code == 2
    assert f"127.0.0.1 port {port_in_use}" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_missing_index_is_said(tmp_path: Path, free_port: int) -> None:
    """The sentence says where it was looked for, and what to do."""
    ran = CliRunner().invoke(main, ["--index", str(tmp_path / "none"), *ONE, str(free_port)])
    assert ran.exit_code == 2
    assert "There is no index in" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_half_built_index_is_said(tmp_path: Path, free_port: int) -> None:
    """A build that was begun and never finished is not an index."""
    (tmp_path / ".building-1").mkdir()
    ran = CliRunner().invoke(main, ["--index", str(tmp_path), *ONE, str(free_port)])
    assert ran.exit_code == 2
    assert "half built" in ran.stderr


@pytest.mark.parametrize("arguments", [["--canned", "x"], ["--canned", "0"], []])
def test_bad_options_are_said(arguments: list[str], free_port: int) -> None:
    """Whether click or the settings refuse a value, the exit code is the same."""
    assert CliRunner().invoke(main, [*arguments, *ONE, str(free_port)]).exit_code == 2


def test_an_address_that_does_not_exist_is_said() -> None:
    """The sentence names the address."""
    with pytest.raises(BadSetting, match=r"cannot listen on 203\.0\.113\.1"):
        bind("203.0.113.1", 9)


def test_an_unknown_profile_of_trouble_is_said(free_port: int) -> None:
    """The sentence says which profiles there are."""
    ran = CliRunner().invoke(main, ["--canned", "4", "--interference", "x", *ONE, str(free_port)])
    assert ran.exit_code == 2
    assert "leaf: there is no interference profile 'x'; there are bigtable, " in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_plan_that_cannot_be_read_is_said(tmp_path: Path, free_port: int) -> None:
    """The sentence names file, rule and field."""
    file = tmp_path / "plan.toml"
    file.write_text('about = "x"\n[[rules]]\nkind = "busy"\n', encoding="utf-8")
    bad = ["--interference", str(file), *ONE, str(free_port)]
    ran = CliRunner().invoke(main, ["--canned", "4", *bad])
    assert ran.exit_code == 2
    assert f"leaf: {file}: rule 1, takes: Object missing required field" in ran.stderr


def test_a_token_that_can_be_guessed_is_said(tmp_path: Path, free_port: int) -> None:
    """A short token, an empty or a missing file: the leaf does not start."""
    short, empty = tmp_path / "short", tmp_path / "empty"
    short.write_text("secret\n", encoding="utf-8")
    empty.touch()
    for file, words in (
        (short, "the admin token must have at least 16 characters"),
        (empty, "is empty"),
        (tmp_path / "none", "cannot be read"),
    ):
        bad = ["--admin-token-file", str(file), *ONE, str(free_port)]
        ran = CliRunner().invoke(main, ["--canned", "4", *bad])
        assert ran.exit_code == 2
        assert words in ran.stderr


def test_a_leaf_meets_trouble_only_when_it_may() -> None:
    """With a plan, or with a token that could bring one; otherwise its workers are plain."""
    place = Place(ordinal=0, leaves=1, replicas=1)
    assert not may_be_troubled(Config(place=place, port=1, canned=1, seed=3))
    chosen = SeededPlan("flapping", profile("flapping"), 3)
    assert may_be_troubled(Config(place=place, port=1, canned=1, interference=chosen))
    assert may_be_troubled(Config(place=place, port=1, canned=1, admin_token="x" * 16))
