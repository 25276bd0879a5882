"""Settings: a value that exists is legal, and what is not says which option is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leaf.config import Config, Place
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
        ({"index": Path("x"), "canned": 3}, "--index DIR or --canned"),
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
