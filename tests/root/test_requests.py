"""What may be asked over HTTP: a request that exists is legal, all else names its field."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf.protocol import Bool, Word
from root.errors import BadRequest
from root.requests import (
    PARAMETERS_MAX,
    RESULT_WINDOW_MAX,
    SearchRequest,
    SuggestRequest,
    parameters,
    search_from_json,
    search_from_query_string,
    suggest_from_query_string,
)


def refusal(read: Callable[[bytes], SearchRequest], given: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(given)
    assert caught.value.detail
    return caught.value


def outcome(read: Callable[[bytes], SearchRequest], given: bytes) -> SearchRequest | str:
    """The request, or the field that is at fault."""
    try:
        return read(given)
    except BadRequest as error:
        return error.field


# --- what is legal -----------------------------------------------------------------------

EVERYTHING = SearchRequest(
    q="parse json",
    strict=True,
    combine="best",
    tie_breaker=0.25,
    k=20,
    offset=40,
    timeout_ms=250.5,
    min_coverage=0.9,
    fields=("name", "body"),
    highlight=("body",),
    hedge="off",
    priority="batch",
    trace=True,
)


def test_a_query_string_and_a_body_say_the_same() -> None:
    """Every parameter can be given both ways."""
    query_string = (
        b"q=parse+json&k=20&offset=40&timeout_ms=250.5&min_coverage=0.9"
        b"&fields=name,body&highlight=body&hedge=off&priority=batch&trace=1"
        b"&strict=1&combine=best&tie_breaker=0.25"
    )
    body = (
        b'{"q": "parse json", "k": 20, "offset": 40, "timeout_ms": 250.5, "min_coverage": 0.9,'
        b' "fields": ["name", "body"], "highlight": ["body"], "hedge": "off",'
        b' "priority": "batch", "trace": true, "strict": true, "combine": "best",'
        b' "tie_breaker": 0.25}'
    )
    assert search_from_query_string(query_string) == EVERYTHING
    assert search_from_json(body) == EVERYTHING


def test_only_the_query_is_needed() -> None:
    """Everything else has a default, or is the root's setting."""
    assert search_from_query_string(b"q=a") == search_from_json(b'{"q":"a"}')
    assert search_from_query_string(b"q=a") == SearchRequest(q="a")


def test_a_tree_is_given_as_data() -> None:
    """Only a body can hold one."""
    body = b'{"query": {"type": "bool", "must": [{"type": "word", "text": "a", "boost": 2}]}}'
    assert search_from_json(body).query == Bool(must=(Word("a", boost=2.0),))


@pytest.mark.parametrize(
    ("query_string", "found"),
    [
        (b"", {}),
        (b"q=a+b%20c", {"q": "a b c"}),
        (b"q=a%2Bb%26c%3Dd", {"q": "a+b&c=d"}),
        (b"q=a=b", {"q": "a=b"}),
        (b"q", {"q": ""}),
        (b"q=%E6%97%A5", {"q": "日"}),
        (b"&q=a&&k=1&", {"q": "a", "k": "1"}),
        (b"%71=a", {"q": "a"}),
        (b"q=100%", {"q": "100%"}),
    ],
)
def test_query_strings_are_read_as_browsers_write_them(
    query_string: bytes, found: dict[str, str]
) -> None:
    """A plus is a space, escapes are UTF-8, an empty part is nothing."""
    assert parameters(query_string) == found


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("0", False), ("false", False)]
)
def test_switches_have_two_spellings(text: str, value: bool) -> None:
    """As a number and as a word."""
    assert search_from_query_string(f"q=a&trace={text}".encode()).trace is value


@pytest.mark.parametrize(("offset", "k"), [(0, 1), (0, 1000), (RESULT_WINDOW_MAX - 10, 10)])
def test_the_window_of_results_has_its_ends(offset: int, k: int) -> None:
    """Limits are the last legal values."""
    request = search_from_query_string(f"q=a&offset={offset}&k={k}".encode())
    assert (request.offset, request.k) == (offset, k)


# --- what is not -------------------------------------------------------------------------

NOT_A_COUNT = [-1, 2**31, 2**63, 2**64, 10**25, 10**400, 1.5, "10", "", True, None, [], {}]


@pytest.mark.parametrize("value", [0, *NOT_A_COUNT])
def test_a_body_with_a_bad_k_names_it(value: object) -> None:
    """Out of range, or of another type."""
    assert refusal(search_from_json, json.dumps({"q": "a", "k": value}).encode()).field == "k"


@pytest.mark.parametrize("value", NOT_A_COUNT)
def test_a_body_with_a_bad_offset_names_it(value: object) -> None:
    """Out of range, or of another type."""
    body = json.dumps({"q": "a", "offset": value}).encode()
    assert refusal(search_from_json, body).field == "offset"


@pytest.mark.parametrize("name", ["k", "offset", "timeout_ms", "min_coverage"])
@pytest.mark.parametrize(
    "text",
    ["-1", str(2**31), str(2**63), "1e400", "1e2", "NaN", "inf", "0x10", "1_0", " 1", "", "٣"],
)
def test_a_query_string_with_a_bad_number_names_it(name: str, text: str) -> None:
    """A number is written in plain digits and lies in its range."""
    given = urlencode({"q": "a", name: text}).encode()
    assert refusal(search_from_query_string, given).field == name


@pytest.mark.parametrize("text", ["%221%22", "true", "null", "1%0A", "+1", "%FF", "%00", "9" * 21])
def test_a_query_string_with_no_number_names_the_field(text: str) -> None:
    """Nothing but digits, a sign and a point is a number."""
    for name in ("k", "timeout_ms"):
        given = f"q=a&{name}={text}".encode()
        assert refusal(search_from_query_string, given).field == name


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"q":"a","timeout_ms":0}', "timeout_ms"),
        (b'{"q":"a","timeout_ms":60001}', "timeout_ms"),
        (b'{"q":"a","timeout_ms":1e400}', "timeout_ms"),
        (b'{"q":"a","timeout_ms":"10"}', "timeout_ms"),
        (b'{"q":"a","k":1e400}', "k"),
        (b'{"q":"a","min_coverage":-0.1}', "min_coverage"),
        (b'{"q":"a","min_coverage":1.1}', "min_coverage"),
        (b'{"q":"a","min_coverage":true}', "min_coverage"),
        (b'{"q":1}', "q"),
        (b'{"q":["a"]}', "q"),
        (b'{"q":"a","fields":"name"}', "fields"),
        (b'{"q":"a","fields":["name",1]}', "fields[1]"),
        (b'{"q":"a","highlight":{}}', "highlight"),
        (b'{"q":"a","hedge":"sometimes"}', "hedge"),
        (b'{"q":"a","hedge":true}', "hedge"),
        (b'{"q":"a","priority":"urgent"}', "priority"),
        (b'{"q":"a","priority":null}', "priority"),
        (b'{"q":"a","trace":1}', "trace"),
        (b'{"q":"a","trace":"true"}', "trace"),
        (b'{"q":"a","size":10}', "size"),
        (b'{"q":"a","Q":"a"}', "Q"),
        (b'{"q":"a","":1}', "body"),
        (b'{"q":"a","q":"b"}', "q"),
        (b'{"q":"a","k":1,"k":2}', "k"),
        (b'{"query":{"type":"word","text":"a","text":"b"}}', "text"),
        (b"{}", "q"),
        (b'{"q":null}', "q"),
        (b'{"q":"a","query":{"type":"all"}}', "q"),
        (b'{"query":{}}', "query"),
        (b'{"query":[]}', "query"),
        (b'{"query":{"type":"regex"}}', "query.type"),
        (b'{"query":{"type":"word"}}', "query"),
        (b'{"query":{"type":"word","text":"a","slop":1}}', "query.slop"),
        (b'{"query":{"type":"bool","must":[{"type":"word","text":1}]}}', "query.must[0].text"),
        (b'{"q":"a","offset":9991}', "offset"),
        (b'{"q":"a","offset":9001,"k":1000}', "offset"),
    ],
)
def test_a_bad_field_of_a_body_is_named(body: bytes, field: str) -> None:
    """Unknown, twice there, of the wrong type, out of range, or missing."""
    assert refusal(search_from_json, body).field == field


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"q"',
        b"{",
        b'{"q":"a"} x',
        b"q=a",
        b'\xef\xbb\xbf{"q":"a"}',
        b'{"q":"\xff"}',
        b'{"\xff":"a"}',
        b'{"q":"\xed\xa0\x80"}',
        b'{"q":"\\ud800"}',
        b'{"q":"\\udc00\\ud800"}',
        b'{"q":"a","fields":["\\ud800"]}',
        b'{"q":"a","k":NaN}',
        b'{"q":"a\0"}',
        b"[" * 100_000,
        b'{"query":' * 100_000,
        b'{"query":{"type":"bool","must":[' + b'{"type":"bool","must":[' * 50_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=range(20),
)
def test_a_body_that_is_no_request_is_refused_as_a_whole(body: bytes) -> None:
    """Not JSON, not UTF-8, no object, or too deep to be read: always one clear refusal."""
    assert refusal(search_from_json, body).field in {"body", "a"}


def test_a_tree_too_deep_to_be_read_is_refused() -> None:
    """Valid JSON that is nested beyond what can be read is refused; how deep that is, the
    Python at hand decides. What can be read is refused as a tree (``check_tree``).
    """
    for depth in (100, 300, 500, 1000, 3000, 100_000):
        open_, close = b'{"type":"bool","must":[', b"]}"
        body = b'{"query":' + open_ * depth + b'{"type":"all"}' + close * depth + b"}"
        found = outcome(search_from_json, body)
        assert found == "body" or (depth < 100_000 and isinstance(found, SearchRequest))


@pytest.mark.parametrize(
    ("query_string", "field"),
    [
        (b"", "q"),
        (b"k=1", "q"),
        (b"q=a&size=10", "size"),
        (b"Q=a", "Q"),
        (b"q=a&query=b", "query"),
        (b"q=a&q=a", "q"),
        (b"q=a&k=1&k=1", "k"),
        (b"q=a&%6B=1&k=1", "k"),
        (b"q=%FF", "q"),
        (b"q=%ED%A0%80", "q"),
        (b"q=%C0%80", "q"),
        (b"q=\xff", "q"),
        (b"%FF=a", "query string"),
        (b"=a", "query string"),
        (b"q=a&" * (PARAMETERS_MAX + 1), "query string"),
        (b"q=a&trace=yes", "trace"),
        (b"q=a&trace=", "trace"),
        (b"q=a&hedge=sometimes", "hedge"),
        (b"q=a&priority=", "priority"),
        (b"q=a&fields=" + b",".join([b"f"] * 65), "fields"),
        (b"q=a&timeout_ms=0", "timeout_ms"),
        (b"q=a&offset=9991", "offset"),
        (b"q=a&k=0", "k"),
    ],
)
def test_a_bad_parameter_is_named(query_string: bytes, field: str) -> None:
    """Unknown, twice there, not UTF-8, of the wrong kind, out of range, or missing."""
    assert refusal(search_from_query_string, query_string).field == field


def test_an_unknown_name_is_not_repeated_at_length() -> None:
    """A refusal is short, however long the name is."""
    error = refusal(search_from_query_string, b"x" * 60_000 + b"=1")
    assert len(str(error)) < 300


# --- whatever is sent --------------------------------------------------------------------

names = st.sampled_from(["q", "query", "k", "offset", "timeout_ms", "fields", "trace", "x", "type"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(body=st.binary(max_size=60) | st.dictionaries(names, values).map(json.dumps))
def test_no_body_raises_anything_but_a_bad_request(body: bytes | str) -> None:
    """Random bytes and random JSON are a legal request or one refusal."""
    request = outcome(search_from_json, body.encode() if isinstance(body, str) else body)
    if isinstance(request, SearchRequest):
        assert (request.q is None) != (request.query is None)
        assert 1 <= request.k <= request.offset + request.k <= RESULT_WINDOW_MAX


parts = st.tuples(names, st.text(max_size=9).map(lambda t: quote(t, errors="surrogatepass")))
query_strings = st.lists(parts.map("=".join), max_size=6).map("&".join).map(str.encode)


@given(query_string=st.binary(max_size=60) | query_strings)
def test_no_query_string_raises_anything_but_a_bad_request(query_string: bytes) -> None:
    """Random bytes and random parameters are a legal request or one refusal."""
    request = outcome(search_from_query_string, query_string)
    assert request
    assert isinstance(request, str) or request.q is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"query": {"type": "all"}, "strict": true}', "strict"),
        (b'{"q": "a", "tie_breaker": 0.5}', "tie_breaker"),
        (b'{"q": "a", "combine": "sum", "tie_breaker": 0.5}', "tie_breaker"),
        (b'{"q": "a", "combine": "best", "tie_breaker": 1.5}', "tie_breaker"),
        (b'{"q": "a", "combine": "worst"}', "combine"),
        (b'{"query": {"type": "fuzzy", "text": "a", "distance": 3}}', "query.distance"),
        (b'{"query": {"type": "word", "text": "a", "tie_breaker": -1}}', "query.tie_breaker"),
        (b'{"similar_to": "a", "strict": true}', "strict"),
        (b'{"similar_to": "a", "q": "a"}', "q"),
        (b'{"similar_to": "a\\u0000b"}', "similar_to"),
    ],
)
def test_options_of_a_query_that_do_not_fit_it_are_refused(body: bytes, field: str) -> None:
    """What would be ignored, or is out of range, is named."""
    assert refusal(search_from_json, body).field == field


def test_a_cursor_and_an_offset_exclude_each_other() -> None:
    """A cursor says itself where to go on."""
    with pytest.raises(BadRequest, match="offset"):
        search_from_json(b'{"q": "a", "cursor": "x", "offset": 1}')


def test_suggestions_are_asked_for_in_a_query_string() -> None:
    """With a prefix, which is what was typed; everything else has a default."""
    whole = suggest_from_query_string(b"prefix=json+pa&k=3&timeout_ms=50")
    assert whole == SuggestRequest(prefix="json pa", k=3, timeout_ms=50.0)
    assert suggest_from_query_string(b"prefix=a") == SuggestRequest(prefix="a")


@pytest.mark.parametrize(
    ("query_string", "field"),
    [
        (b"", "prefix"),
        (b"prefix=+", "prefix"),
        (b"prefix=" + b"a" * 257, "prefix"),
        (b"prefix=%01", "prefix"),
        (b"prefix=a&k=101", "k"),
        (b"prefix=a&q=b", "q"),
    ],
)
def test_bad_requests_for_suggestions_name_their_field(query_string: bytes, field: str) -> None:
    """As those for searches do."""
    with pytest.raises(BadRequest) as caught:
        suggest_from_query_string(query_string)
    assert caught.value.field == field
