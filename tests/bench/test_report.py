"""What a benchmark prints."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from bench import report
from bench.recorder import Recorder


def test_the_header_says_how_to_repeat_the_run() -> None:
    """Seed, command, machine and commit are all there."""
    out = io.StringIO()
    report.show_header(report.header("search", 7), Console(file=out))
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == [
        "experiment",
        "seed",
        "command",
        "machine",
        "commit",
    ]
    assert all(len(line.split()) > 1 for line in lines)


def test_the_header_says_under_what_conditions() -> None:
    """What was asked, what was injected, and what was real: on the terminal and in pictures."""
    words = report.Conditions(load="50/s", injected="one stall in a hundred", real="the rest")
    head, out = report.header("load", 7, conditions=words), io.StringIO()
    report.show_header(head, Console(file=out))
    assert "one stall in a hundred" in out.getvalue()
    assert report.caption(head).splitlines()[1:] == [
        *("load: 50/s", "injected: one stall in a hundred", "real: the rest")
    ]
    assert head.commit in report.caption(head)


def test_a_run_that_fell_behind_is_named_invalid() -> None:
    """With the lag that made it so; a run that kept up is not called names."""
    early, late, out = Recorder(), Recorder(), io.StringIO()
    early.record_lag(0.0005)
    late.record_lag(0.03)
    runs = {"off": early.summary(), "adaptive": late.summary()}
    report.show_validity(runs, Console(file=out, width=200))
    assert "30 ms late: INVALID (adaptive)" in out.getvalue()
    out.truncate(0)
    report.show_validity({"off": early.summary()}, Console(file=out, width=200))
    assert "INVALID" not in out.getvalue()


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (1234.5, "1,234"), (0.12345, "0.123"), ("a", "a"), (None, "None")]
)
def test_figures_have_three_digits(value: object, text: str) -> None:
    """A measured number is shown to three significant digits; names and counts as they are."""
    assert report.figure(value) == text


def test_a_table_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is cut where no terminal says how wide it is, and nothing becomes a picture."""
    columns = ["arm", *(f"quantity {n}" for n in range(7))]
    report.show_table("T", columns, [["name:file", *[1.5] * 7]], report.wide_console())
    out = capsys.readouterr().out
    assert all(column in out for column in columns)
    assert "name:file" in out


def test_json_holds_result_and_header(tmp_path: Path) -> None:
    """One object: the result's keys, the experiment's name, the header."""
    path = tmp_path / "result.json"
    report.write_json(path, report.header("search", 7), {"shards": 16})
    body = orjson.loads(path.read_bytes())
    assert (body["experiment"], body["shards"], body["header"]["seed"]) == ("search", 16, 7)
    assert "speed" not in body["header"]


def test_json_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Written beside and put in its place as a whole, with nothing left over."""
    path = tmp_path / "result.json"
    report.write_json(path, report.header("search", 7, "fast"), {"shards": 16})
    before = path.read_bytes()
    assert orjson.loads(before)["header"]["speed"] == "fast"
    with pytest.raises(TypeError):
        report.write_json(path, report.header("search", 7), {"shards": object()})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
