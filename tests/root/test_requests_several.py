"""Several searches in one body: taken apart first, and each read by itself then."""

from __future__ import annotations

import pytest

from root.errors import BadRequest
from root.requests import SEARCHES_MAX, one_of_several_from_json, searches_from_json


def test_each_search_is_left_as_it_was_sent() -> None:
    """One that cannot be read is no fault of the others."""
    assert searches_from_json(b'{"searches": [{"q": "a"}, 3]}') == [b'{"q": "a"}', b"3"]


@pytest.mark.parametrize("count", [0, SEARCHES_MAX + 1])
def test_there_are_some_and_not_too_many(count: int) -> None:
    """The error names the list."""
    with pytest.raises(BadRequest) as raised:
        searches_from_json(b'{"searches": [%s]}' % b",".join([b"{}"] * count))
    assert raised.value.field == "searches"


def test_one_of_several_may_name_its_collection() -> None:
    """It is a search otherwise, with the same checks."""
    assert one_of_several_from_json(b'{"q": "a"}').collection is None
    assert one_of_several_from_json(b'{"q": "a", "collection": "b"}').collection == "b"
    for sent, field in (
        (b'{"collection": "b"}', "q"),
        (b'{"q": "a", "k": 0}', "k"),
        (b"3", "body"),
    ):
        with pytest.raises(BadRequest) as raised:
            one_of_several_from_json(sent)
        assert raised.value.field == field
