"""The commands that measure load and place shards by it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from index_data.__main__ import main
from index_data.build import build
from index_data.manifest import Field
from index_data.placement_file import PLACEMENT_FILE, read_placement
from index_data.sources import BadLine, Collection, Document


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module", name="built")
def built_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generation of eight shards."""

    def read() -> Iterator[Document | BadLine]:
        for number in range(24):
            yield Document(f"d{number:02d}", {"body": f"word{number}"}, f"record {number}")

    collection = Collection("made", "words", (Field("body", "text"),), read)
    return build(collection, tmp_path_factory.mktemp("index"), 8).folder


@pytest.fixture(name="generation")
def generation_fixture(built: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(built, tmp_path / "index" / built.name))


def load_of(folder: Path, /, **change: Any) -> Path:
    """A file that says that shard 3 has as much to do as all others together."""
    load: dict[str, Any] = {"generation": folder.name, "leaves": 4, "replicas": 2}
    load["work_s"] = {str(shard): 7.0 if shard == 3 else 1.0 for shard in range(8)}
    path = folder.parent.parent / "load.json"
    path.write_text(json.dumps(load | change))
    return path


def test_a_proposal_is_shown_and_written_on_request(generation: Path) -> None:
    """First nothing is written; then the placement is, and with it there is nothing to do."""
    load = load_of(generation)
    command = ("rebalance", generation.parent, "--load", load)
    shown = run(*command)
    assert shown.exit_code == 0, shown.output
    assert "shard 3: to leaf" in shown.output
    assert "2 -> 3 replicas" in shown.output
    assert "nothing is written without --write" in shown.output
    assert read_placement(generation, 8) is None
    written = run(*command, "--write")
    assert written.output.splitlines()[:-1] == shown.output.splitlines()[:-1]
    assert "follow within seconds" in written.output
    placement = read_placement(generation, 8)
    assert placement is not None
    assert (placement.leaves, placement.replicas, list(placement.chosen)) == (4, 2, [3])
    again = run(*command, "--write")
    assert "nothing to change" in again.output
    assert read_placement(generation, 8) == placement


def test_a_load_that_has_gone_takes_the_copies_with_it(generation: Path) -> None:
    """What goes by the rule again is not chosen any more."""
    run("rebalance", generation.parent, "--load", load_of(generation), "--write")
    even = load_of(generation, work_s={str(shard): 1.0 for shard in range(8)})
    result = run("rebalance", generation.parent, "--load", even, "--write")
    assert "off leaf" in result.output
    placement = read_placement(generation, 8)
    assert placement is not None
    assert all(len(held) == 2 for held in placement.chosen.values())


def test_without_any_load_there_is_nothing_to_do(generation: Path) -> None:
    """Nobody has asked for anything."""
    result = run("rebalance", generation.parent, "--load", load_of(generation, work_s={}))
    assert result.exit_code == 0
    assert "nothing to change" in result.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"generation": "20200101-000000-0000"}, "generation"),
        ({"generation": "../x"}, "generation"),
        ({"leaves": 0}, "leaves"),
        ({"leaves": -1}, "leaves"),
        ({"replicas": 5}, "replicas"),
        ({"work_s": {"8": 1.0}}, "work_s: there is no shard 8"),
        ({"work_s": {"0": -1.0}}, "work_s of shard 0"),
        ({"work_s": {"x": 1.0}}, "work_s"),
        ({"work_s": [1.0]}, "work_s"),
        ({"work_s": {"0": float("nan")}}, "not a load"),
        ({"domains": ["a"]}, "domains"),
    ],
)
def test_a_bad_load_is_one_sentence_and_writes_nothing(
    change: dict[str, Any], words: str, generation: Path
) -> None:
    """It names the member that is wrong."""
    load = load_of(generation, **change)
    result = run("rebalance", generation.parent, "--load", load, "--write")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (generation / PLACEMENT_FILE).exists()


@pytest.mark.parametrize("ratio", ["1", "nan", "x"])
def test_a_ratio_that_means_nothing_is_refused(ratio: str, generation: Path) -> None:
    """Exit code 2, and the option or the member is named."""
    result = run("rebalance", generation.parent, "--load", load_of(generation), "--ratio", ratio)
    assert result.exit_code == 2
    assert "ratio" in result.stderr


# --- measuring -----------------------------------------------------------------------------


class Leaf(BaseHTTPRequestHandler):
    """One leaf that has a second more to tell of each time it is asked."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        body = json.dumps(self.said()).encode() if self.path == "/load" else b"no JSON"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def said(self) -> dict[str, Any]:
        work_s = {"default": {"g1": {"0": float(self.asked), "1": 4.0}}}
        place = {"ordinal": 0, "leaves": 1, "replicas": 1}
        return {"leaf": "leaf0", "pid": 1, "domain": "rack", "work_s": work_s, **place}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(name="url")
def url_fixture() -> Iterator[str]:
    """Where the one leaf of a fleet answers."""
    Leaf.asked = 0
    with HTTPServer(("127.0.0.1", 0), Leaf) as server:
        serving = Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def test_load_is_measured_between_two_readings(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with no time between them, since the leaf has started."""
    slept: list[float] = []
    monkeypatch.setattr("index_data.balancing.time.sleep", slept.append)
    out = tmp_path / "load.json"
    for seconds, expected in (("30", {"0": 1.0, "1": 0.0}), ("0", {"0": 3.0, "1": 4.0})):
        result = run("load", url, "--seconds", seconds, "--out", out)
        assert result.exit_code == 0, result.output
        assert json.loads(out.read_text())["work_s"] == expected
    assert slept == [30.0, 0.0]
    assert [path.name for path in tmp_path.iterdir()] == ["load.json"]


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://127.0.0.1:1", "does not say its load"), ("x", "not the URL"), ("{}/x", "not a leaf")],
)
def test_who_is_no_leaf_is_named(address: str, words: str, url: str, tmp_path: Path) -> None:
    """One sentence, and no file."""
    address = address.format(url)
    result = run("load", address, "--seconds", "0", "--out", tmp_path / "load.json")
    assert result.exit_code == 2
    assert words in result.stderr
    assert address in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_said_before_anything_is_measured(url: str, tmp_path: Path) -> None:
    """Not a minute later."""
    result = run("load", url, "--out", tmp_path / "nowhere" / "load.json")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
    assert Leaf.asked == 0
