"""What a tick has for a leaf, as frames: none too large, none lost."""

from __future__ import annotations

import aiohttp
import msgspec
import orjson
import pytest

from index_data.manifest import Field, GenerationCard
from leaf import protocol
from leaf.protocol import DEFAULT_COLLECTION, PROTOCOL_VERSION, Holding, LeafHello
from root.frames import (
    ASKS_BYTES_MAX,
    BrokenProtocol,
    Group,
    how_many_fit,
    read_frame,
    read_holdings,
    written_ask,
)
from root.ranking import Leaf
from root.scatter import Ask


def group(body_bytes: int, legs: int = 1) -> Group:
    """Legs of an ask with a body of that size."""
    return Ask("search", "g", b"x" * body_bytes, 1.0), 0, list(range(legs)), {}


def read_back(group: Group, now: float) -> protocol.Ask:
    """The group's ask as a leaf reads it."""
    return msgspec.json.decode(orjson.dumps(written_ask(group, now)), type=protocol.Ask)


@pytest.mark.parametrize(
    ("sizes", "fit"),
    [
        ([10], 1),
        ([10, 10, 10], 3),
        ([ASKS_BYTES_MAX + 1], 1),
        ([ASKS_BYTES_MAX + 1, 10], 1),
        ([ASKS_BYTES_MAX // 2, ASKS_BYTES_MAX // 4, ASKS_BYTES_MAX // 2], 2),
    ],
)
def test_asks_are_cut_into_frames_that_a_leaf_takes(sizes: list[int], fit: int) -> None:
    """As many as stay below the limit, and always one."""
    assert how_many_fit([group(size) for size in sizes]) == fit


def holding(
    documents: tuple[int, ...],
    *shards: int,
    generation: str = "g",
    leaving: dict[int, int] | None = None,
) -> Holding:
    """What a leaf says of a generation."""
    card = GenerationCard(generation, documents, (Field("title", "text"),), 0.0)
    return Holding(msgspec.Raw(msgspec.json.encode(card)), shards, leaving or {})


def hello(*holdings: Holding) -> LeafHello:
    """A leaf's first words."""
    return LeafHello(PROTOCOL_VERSION, "leaf", "here", 1, {DEFAULT_COLLECTION: holdings}, 1)


def test_what_a_leaf_holds_is_read_from_its_hello() -> None:
    """Each generation with the shards held here, and those that are to be given up."""
    said = hello(holding((3, 4), 1, leaving={1: 2}), holding((5,), 0, generation="h"))
    held = read_holdings(Leaf("a", 0.0), said)
    assert [(h.card.generation, h.shards) for h in held] == [("g", (1,)), ("h", (0,))]
    assert [h.leaving for h in held] == [{1: 2}, {}]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (hello(holding(())), "without shards"),
        (hello(holding((3, 4), 1, 1)), "a shard twice"),
        (hello(holding((3, 4), 2)), "lacks"),
        (hello(holding((3, 4), 1, leaving={0: 2})), "does not hold"),
        (hello(holding((3, 4), 0), holding((3, 4), 1)), "generation twice"),
        (hello(Holding(msgspec.Raw(b"{}"), ())), "no generation"),
    ],
)
def test_holdings_that_cannot_be_are_refused(said: LeafHello, problem: str) -> None:
    """An empty generation would pass for a whole one, and a shard held twice for two replicas."""
    with pytest.raises(BrokenProtocol, match=problem):
        read_holdings(Leaf("a", 0.0), said)


def test_an_ask_is_written_as_the_contract_has_it() -> None:
    """With the time that is left, and with ordinals and number where there are any."""
    ask = Ask("fetch", "g", b"{}", 1.0, ordinals={7: [4, 2], 8: [1]}, query=12)
    read = read_back((ask, 3, [8, 7], {}), 0.75)
    assert (read.first, read.shards, read.ordinals) == (3, (8, 7), ((1,), (4, 2)))
    assert (read.budget_ms, read.query) == (250.0, 12)
    plain = Ask("search", "g", b"{}", 1.0)
    read = read_back((plain, 0, [0], {}), 2.0)
    assert (read.budget_ms, read.query, read.ordinals) == (0.0, None, ())


def test_legs_that_are_tied_name_their_twins() -> None:
    """Each address is written once; a leg between them that is not tied names nobody."""
    ask = Ask("search", "g", b"{}", 1.0, tie="secret")
    tie = read_back((ask, 0, [8, 7, 6, 5], {0: "http://b", 1: "http://c", 3: "http://b"}), 0.0).tie
    assert tie == protocol.Tie("secret", ("http://b", "http://c"), (0, 1, None, 0))
    assert read_back((ask, 0, [8], {}), 0.0).tie is None


def test_a_trace_is_written_where_there_is_one() -> None:
    """Most requests have none, and pay nothing for it."""
    traced = Ask("search", "g", b"{}", 1.0, trace="00-4bf9-00f0-01")
    assert written_ask((traced, 0, [1], {}), 0.5)["trace"] == "00-4bf9-00f0-01"
    assert "trace" not in written_ask((Ask("search", "g", b"{}", 1.0), 0, [1], {}), 0.5)


def said_of(collections: dict[str, tuple[Holding, ...]]) -> LeafHello:
    """The first words of a leaf that serves several collections."""
    return LeafHello(PROTOCOL_VERSION, "leaf", "here", 1, collections, 1)


def test_what_is_held_is_of_a_collection() -> None:
    """Each generation belongs to the one under whose name it stands, and stands there once."""
    docs = (holding((1, 1), 0, generation="g"),)
    articles = (holding((1,), 0, generation="h"),)
    said = said_of({"docs": docs, "articles": articles, "empty": ()})
    held = read_holdings(Leaf("a", 0.0), said)
    assert [(one.collection, one.card.generation) for one in held] == [
        ("docs", "g"),
        ("articles", "h"),
    ]
    with pytest.raises(BrokenProtocol, match="names a generation twice"):
        read_holdings(Leaf("a", 0.0), said_of({"docs": docs, "copied": docs}))


@pytest.mark.parametrize("name", ["", "Docs", "a b", "x" * 41, "docs\n", "a/b"])
def test_a_collection_whose_name_is_none_breaks_the_protocol(name: str) -> None:
    """It stands in paths and in metrics."""
    sent = msgspec.json.encode({"hello": said_of({name: ()})})
    with pytest.raises(BrokenProtocol, match="no frame"):
        read_frame(aiohttp.WSMessage(aiohttp.WSMsgType.BINARY, sent, None))
