"""The command ``hedgerow``: what it prints, and how it ends."""

from __future__ import annotations

import socket
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from root.command import main
from tests.root.client_answers import ANSWER, PARTIAL, problem
from tests.root.client_server import canned
from tests.sim.serving import Served, served
from tests.test_docs import read, section


def run(*words: str) -> Result:
    """Run the command in a terminal of 100 columns that shows no colours."""
    return CliRunner().invoke(main, [*words], env={"COLUMNS": "100", "NO_COLOR": "1"})


def unwrapped(result: Result) -> str:
    """What was printed, on one line."""
    return " ".join(result.output.split())


def test_a_search_prints_hits_coverage_and_attempts() -> None:
    """With the highlights as text, marked, and nothing that a terminal would obey."""
    with canned((200, ANSWER, {})) as root:
        result = run("search", "json", "-k", "3", "--url", root.url)
        assert root.asked == [("POST", "/search", {"q": "json", "k": 3})]
    assert result.exit_code == 0
    assert "1. json.dumps  9.500" in result.output
    assert "a <b> json �[31mred" in result.output
    assert "1,214 hits in 2.4 ms; all 7,711 documents in 16 shards searched" in result.output
    assert "17 attempts, 1 hedged, 1 of them won, 1 cancelled" in unwrapped(result)
    assert "at 4: a quote without its pair" in result.output
    assert "\x1b" not in result.output


def test_what_is_missing_is_said() -> None:
    """Which shards, why, and that there may be more hits."""
    partial = {name: PARTIAL[name] for name in ANSWER}
    with canned((200, {**partial, "hits": [], "did_you_mean": "jason"}, {})) as root:
        result = run("search", "json", "--url", root.url)
    assert "Nothing found" in result.output
    assert "Did you mean: jason" in result.output
    assert "at least 1,214 hits" in result.output
    assert "7,000 of 7,711 documents searched, without 3 (timeout)" in unwrapped(result)


def test_json_is_the_answer_as_it_came() -> None:
    """For programs."""
    with canned((200, ANSWER, {})) as root:
        result = run("search", "json", "--json", "--url", root.url)
    assert orjson.loads(result.output) == ANSWER


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (413, 2), (422, 1), (429, 1), (503, 1), (504, 1)]
)
def test_an_error_is_one_sentence_and_a_code(status: int, code: int) -> None:
    """2 where the request is at fault, 1 where no answer can be had."""
    with canned((status, problem(status, "because of \u001b[31mthat"), {})) as root:
        result = run("search", "json", "--url", root.url)
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("hedgerow: ")
    assert line.endswith("because of �[31mthat")


@pytest.mark.parametrize("words", [("search", "a"), ("top", "--once")])
def test_nobody_there_is_one_sentence(words: tuple[str, ...]) -> None:
    """It names the address; an address that is none is at fault."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    result = run(*words, "--url", url)
    assert result.exit_code == 1
    assert result.stderr == f"hedgerow: {url}: nothing listens there\n"
    assert run(*words, "--url", "nowhere").exit_code == 2


def test_an_explanation_says_what_scores_are_made_of_and_who_was_asked() -> None:
    """Field, term and share of every hit; shard, leaf and fate of every attempt."""
    share = {"field": "body", "text": "json", "score": 9.5}
    hit = {**ANSWER["hits"][0], "shard": 11, "explanation": [share]}
    attempt = {
        "shard": 11,
        "replica": "leaf3",
        "kind": "hedge",
        "fate": "failed",
        "reason": "gone",
        "sent_ms": 0.25,
        "ended_ms": None,
        "queue_ms": None,
        "service_ms": None,
    }
    phase = {"phase": "search", "started_ms": 0.1, "decided_ms": 1.0, "attempts": [attempt]}
    with canned((200, {**ANSWER, "hits": [hit], "trace": [phase]}, {})) as root:
        result = run("explain", "json", "--url", root.url)
        assert root.asked[0][2] == {"q": "json", "k": 10, "explain": True, "trace": True}
    rows = [line.strip("│┃").split() for line in result.output.splitlines()]
    cells = [[cell for cell in row if cell not in "│┃"] for row in rows]
    assert ["json.dumps", "11", "9.500"] in cells
    assert ["body", "json", "9.500"] in cells
    assert ["search", "11", "leaf3", "hedge", "failed", "(gone)", "0.2", "-", "-", "-"] in cells
    assert "17 attempts" in unwrapped(result)


def test_top_prints_the_last_minute_and_each_leaf() -> None:
    """The table of one, 95 % and 100 % of leaves, hedges against the budget, states."""
    seen: list[Any] = []

    async def body(serving: Served) -> None:
        for _ in range(5):
            await serving.client.get("/search?q=a")
        serving.fleet.disconnect(2)
        seen.append((await serving.client.get("/live")).json)

    served(body)
    with canned((200, seen[0], {})) as root:
        result = run("top", "--once", "--url", root.url)
        assert root.asked == [("GET", "/live", None)]
    assert result.exit_code == 0
    for said in (
        "whole requests",
        "one random leaf finishes",
        "95 % of leaves finish",
        "100 % of leaves finish",
        "extra attempts, 100% allowed (adaptive)",
        "tokens left",
        "100 documents in 4 shards",
    ):
        assert said in unwrapped(result)
    rows = {
        row[1].rpartition("/")[2]: row
        for line in result.output.splitlines()
        if len(row := line.split()) > 5
    }
    assert rows["leaf-0"][3] == "well"
    assert rows["leaf-2"][3] == "lost"
    assert "the connection was closed" in result.output


def test_every_option_of_the_command_is_documented() -> None:
    """In the section of its subcommand."""
    for name, command in main.commands.items():
        text = section(read("operations.md"), f"`hedgerow {name}`")
        for parameter in command.params:
            assert f"`{max(parameter.opts, key=len)}" in text or parameter.name == "query"
