"""Settings: a value that exists is legal, and what is not says which option is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leaf.config import Config, Place, read_indexes
from leaf.errors import BadSetting

PLACE = Place(ordinal=1, leaves=4, replicas=2)


def test_names_are_filled_in() -> None:
    """A leaf is named by its number, and fails alone unless told otherwise."""
    config = Config(place=PLACE, port=8082, canned=16)
    assert (config.name, config.domain) == ("leaf1", "leaf1")
    assert Config(place=PLACE, port=8082, canned=16, domain="rack 3").domain == "rack 3"


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"ordinal": 4, "leaves": 4, "replicas": 1}, "--ordinal"),
        ({"ordinal": -1, "leaves": 4, "replicas": 1}, "--ordinal"),
        ({"ordinal": 0, "leaves": 0, "replicas": 1}, "--of"),
        ({"ordinal": 0, "leaves": 4, "replicas": 0}, "--replicas"),
        ({"ordinal": 0, "leaves": 4, "replicas": 5}, "--replicas"),
    ],
)
def test_a_place_must_exist(values: dict[str, int], option: str) -> None:
    """Numbers that fit no fleet are refused by the name of their option."""
    with pytest.raises(BadSetting, match=option):
        Place(**values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "--index DIR or --canned"),
        ({"indexes": {"docs": Path("x")}, "canned": 3}, "--index DIR or --canned"),
        ({"canned": 0}, "--canned"),
        ({"canned": 3, "port": 0}, "--port"),
        ({"canned": 3, "port": 65_536}, "--port"),
        ({"canned": 3, "workers": 0}, "--workers"),
        ({"canned": 3, "workers": 10_000}, "--workers"),
        ({"canned": 3, "queue_legs": 0}, "--queue-legs"),
        ({"canned": 3, "name": "a\nb"}, "--name"),
        ({"canned": 3, "domain": "x" * 101}, "--domain"),
    ],
)
def test_a_setting_must_make_sense(values: dict[str, Any], words: str) -> None:
    """One sentence names the option that is wrong."""
    with pytest.raises(BadSetting, match=words):
        Config(**{"place": PLACE, "port": 8082, **values})


def test_an_index_may_have_a_name() -> None:
    """The order stays; one without a name is ``default``, and what looks like a name in a path is
    none after a slash.
    """
    given = ["docs=a/b", "x=y", "articles-2_b=/c=d", "./e=f"]
    assert [*read_indexes(given).items()] == [
        ("docs", Path("a/b")),
        ("x", Path("y")),
        ("articles-2_b", Path("/c=d")),
        ("default", Path("./e=f")),
    ]
    config = Config(place=PLACE, port=8082, indexes=read_indexes(given))
    assert config.collections == ("docs", "x", "articles-2_b", "default")
    assert Config(place=PLACE, port=8082, canned=3).collections == ("default",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["Docs=a"], "--index Docs=a: a collection's name is 1 to 40 of a-z, .*, not 'Docs'"),
        (["=a"], "not ''"),
        (["x" * 41 + "=a"], "1 to 40"),
        (["docs\n=a"], "1 to 40"),
        (["docs="], "names no folder"),
        ([""], "names no folder"),
        (["a", "b"], "'default' is given twice"),
        (["docs=a", "docs=b"], "'docs' is given twice"),
        (["docs=a", "more=./b/../a"], "the folder is that of another collection"),
        ([f"c{number}=d{number}" for number in range(101)], "given 101 times, most 100"),
    ],
)
def test_an_index_that_cannot_be_one_is_refused(given: list[str], words: str) -> None:
    """One sentence quotes it."""
    with pytest.raises(BadSetting, match=words):
        read_indexes(given)
