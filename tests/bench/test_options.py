"""What all commands of the benchmarks share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from bench.options import common_options, plot_option, publish
from bench.report import Conditions


@click.command()
@common_options
@plot_option
def command(seed: int, quick: bool, json_path: Path | None, plot_path: Path | None) -> None:
    """An experiment."""
    publish(
        "test",
        seed,
        json_path,
        {"quick": quick},
        show,
        conditions=Conditions(load="50/s", injected="nothing"),
        draw=draw,
        plot_path=plot_path,
    )


def show(result: Any, console: Console) -> None:
    """A table."""
    console.print(str(result))


def draw(result: Any, path: Path, caption: str) -> None:
    """A picture."""
    path.write_text(f"{result}\n{caption}", encoding="utf-8")


def invoke(*options: str | Path) -> Result:
    """What the command makes of options."""
    return CliRunner().invoke(command, [str(option) for option in options])


def test_a_result_is_printed_written_and_drawn(tmp_path: Path) -> None:
    """With the same words about how it came about in each."""
    text, picture = tmp_path / "r.json", tmp_path / "r.png"
    done = invoke("--quick", "--json", text, "--plot", picture)
    assert done.exit_code == 0
    assert "50/s" in done.output
    header = orjson.loads(text.read_bytes())["header"]
    assert (header["load"], header["injected"]) == ("50/s", "nothing")
    assert "real" not in header
    assert "load: 50/s\ninjected: nothing" in picture.read_text(encoding="utf-8")


def test_without_a_file_nothing_is_drawn(tmp_path: Path) -> None:
    """And nothing written."""
    assert invoke("--seed", "3").exit_code == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "said"), [("r.jpeg", "no name of a PNG"), ("gone/r.png", "gone does not exist")]
)
def test_a_picture_that_cannot_be_is_refused_at_once(tmp_path: Path, name: str, said: str) -> None:
    """Before anything is measured, naming the option."""
    done = invoke("--plot", tmp_path / name)
    assert done.exit_code == 2
    assert "--plot" in done.output
    assert said in " ".join(done.output.replace("│", " ").split())


def test_pictures_are_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can draw, it is said what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = invoke("--plot", tmp_path / "r.png")
    assert done.exit_code == 2
    assert "hedgerow[bench]" in done.output
    assert invoke().exit_code == 0
