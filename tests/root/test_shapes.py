"""What a query looks like: its structure and size, never its words."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import Field
from leaf.protocol import All, Bool, Fuzzy, Phrase, Prefix, Query, Range, SearchBody, Word
from root.language import parse
from root.requests import RESULT_WINDOW_MAX
from root.shapes import (
    DEPTH_DANGEROUS,
    KEY_BYTES,
    NODES_DANGEROUS,
    TOKENS_DANGEROUS,
    is_dangerous,
    shape_of,
    sketched,
    subject_of,
)

FIELDS = {name: Field(name, "text") for name in ("name", "body")}


def shape(q: str, depth: int = 10) -> str:
    return shape_of(sketched(parse(q, FIELDS).query), depth)


TEXTS = st.integers(1, 5).map(lambda n: " ".join(["word"] * n))
NAMES = st.sampled_from([None, *FIELDS])
TREES: st.SearchStrategy[Query] = st.recursive(
    st.just(All())
    | st.builds(Word, TEXTS, NAMES)
    | st.builds(Phrase, TEXTS, NAMES)
    | st.builds(Fuzzy, TEXTS, st.integers(1, 2), NAMES),
    lambda trees: st.builds(Bool, *[st.lists(trees, max_size=3).map(tuple)] * 3),
    max_leaves=10,
)


def reworded(query: Query, random: Random) -> Query:
    """The same tree with other words and weights, its clauses in another order."""
    match query:
        case Word(text, field):
            return Word(other_words(text, random), field, random.uniform(0.1, 10.0))
        case Phrase(text, field):
            return Phrase(other_words(text, random), field, random.uniform(0.1, 10.0))
        case Fuzzy(text, distance, field):
            return Fuzzy(other_words(text, random), distance, field, random.uniform(0.1, 10.0))
        case Prefix() | Range():
            raise AssertionError("no words but a field or a length are part of its shape")
        case Bool():
            parts = [
                tuple(reworded(child, random) for child in random.sample(part, len(part)))
                for part in (query.must, query.should, query.must_not)
            ]
            return Bool(*parts)
        case All():
            return query


def other_words(text: str, random: Random) -> str:
    return " ".join("".join(random.choices("abcé12", k=random.randint(1, 9))) for _ in text.split())


@given(query=TREES, depth=st.integers(1, 20_000), seed=st.integers(0, 2**32))
def test_other_words_are_the_same_shape(query: Query, depth: int, seed: int) -> None:
    """Nor does the order of clauses matter, nor their weight."""
    other = reworded(query, Random(seed))
    assert shape_of(sketched(other), depth) == shape_of(sketched(query), depth)
    assert is_dangerous(sketched(other), depth) == is_dangerous(sketched(query), depth)


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("json", "word:* to 10"),
        ("json.dumps", "word:*/2 to 10"),
        ("::", "word:* to 10"),
        ("name:loads", "word:name to 10"),
        ('"file like object"', "phrase:*/4 to 10"),
        ("parse json", "bool( word:*x2) to 10"),
        ("parse* jsno~", "bool( fuzzy2:* prefix2:*) to 10"),
        ('name:"json d"*', "prefix1:name/2 to 10"),
        ('+json "file like" -body:xml', "bool(+word:* phrase:*/2-word:body) to 10"),
    ],
)
def test_a_shape_can_be_read(q: str, expected: str) -> None:
    """It stands in the log, where somebody has to know what was refused."""
    assert shape(q) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", '"a"'),
        ("a", "name:a"),
        ("+a", "-a"),
        ("a b", "a b c"),
        ("a", "a.b"),
        ('"a b"', '"a b c"'),
        ("+a b", "+a +b"),
        ("ab", "ab*"),
        ("ab", "ab~1"),
        ("ab~1", "ab~2"),
        ("a*", "ab*"),
    ],
)
def test_another_structure_is_another_shape(one: str, other: str) -> None:
    """Kind, field, sign and number all count."""
    assert shape(one) != shape(other)


def test_numbers_count_by_powers() -> None:
    """Of two for words and clauses, of ten for depth: so shapes are few."""
    assert len({shape(" ".join(["a"] * n)) for n in range(2, 64)}) == 6
    assert [shape("a", depth).split()[-1] for depth in (1, 2, 10, 11, 100, 101, 20_000)] == [
        "1",
        "10",
        "10",
        "100",
        "100",
        "1000",
        "100000",
    ]


def test_a_node_of_an_unknown_kind_is_a_fault_of_ours() -> None:
    """Whoever adds a kind of node decides what shape it is."""
    with pytest.raises(AssertionError):
        sketched("not a node")  # type: ignore[arg-type]


def test_a_large_tree_has_no_shape_but_its_size() -> None:
    """However it is made: what is remembered of it stays small."""
    many = Bool(should=tuple(Word("a", f"field{i}") for i in range(100)))
    other = Bool(must=(Bool(should=(Word("a"),) * 98),))
    assert shape_of(sketched(many), 10) == shape_of(sketched(other), 10) == "tree of 128 to 10"
    assert is_dangerous(sketched(many), 10)


@pytest.mark.parametrize(
    ("query", "depth", "dangerous"),
    [
        (Word("a"), DEPTH_DANGEROUS, False),
        (Word("a"), DEPTH_DANGEROUS + 1, True),
        (Bool(should=(Word("a"),) * (NODES_DANGEROUS - 1)), 10, False),
        (Bool(should=(Word("a"),) * NODES_DANGEROUS), 10, True),
        (Phrase("a " * TOKENS_DANGEROUS), 10, False),
        (Phrase("a " * (TOKENS_DANGEROUS + 1)), 10, True),
        (Bool(must_not=(Word("a." * (TOKENS_DANGEROUS + 1)),)), 10, True),
        (Prefix("a"), 10, True),
        (Bool(must_not=(Prefix("json d"),)), 10, True),
        (Prefix("..."), 10, True),
        (Prefix("ab"), 10, False),
        (Range("year", gte=1), 10, False),
        (Bool(should=(Prefix("日本"), Fuzzy("a"))), 10, False),
        (Bool(), 10, False),
        (All(), 10, False),
    ],
)
def test_size_is_dangerous(query: Query, depth: int, *, dangerous: bool) -> None:
    """Very large trees, very long texts and very deep pages; and prefixes of one letter."""
    assert is_dangerous(sketched(query), depth) == dangerous


def test_a_usual_page_of_usual_words_is_not_dangerous() -> None:
    """The deepest page that is not is half of what may be asked."""
    assert 2 * DEPTH_DANGEROUS == RESULT_WINDOW_MAX
    assert not is_dangerous(
        sketched(parse("+parse json -xml name:loads pars* jsno~", FIELDS).query), 1000
    )


def test_a_subject_is_known_by_its_shape_and_by_its_words() -> None:
    """Two keys of fixed size, however long the query is."""

    def subject(q: str) -> tuple[bytes, bytes]:
        query = parse(q, FIELDS).query
        known = subject_of(query, 10, msgspec.json.encode(SearchBody(query, 10)))
        assert known.described == shape_of(sketched(query), 10)
        assert len(known.shape) == len(known.words) == KEY_BYTES
        return known.shape, known.words

    assert subject("one") == subject("one")
    assert subject("one")[0] == subject("two")[0]
    assert subject("one")[1] != subject("two")[1]
    assert subject("one")[0] != subject('"one two"')[0]


def test_best_and_sum_of_fields_are_two_shapes() -> None:
    """They are not the same code in a leaf."""
    best = sketched(Word("a", tie_breaker=0.0)).shape
    assert best == sketched(Word("a", tie_breaker=0.5)).shape != sketched(Word("a")).shape


def test_ranges_of_one_field_are_one_shape() -> None:
    """Whatever their bounds."""
    shapes = {sketched(Range("year", **bounds)).shape for bounds in ({"gte": 1}, {"lt": 5}, {})}
    assert shapes == {"range:year"}


def test_a_query_of_another_collection_is_another_query() -> None:
    """What does harm in one index may be harmless in another, and the other way round."""
    docs, articles = (subject_of(Word("a"), 10, b"{}", collection=c) for c in ("docs", "articles"))
    assert docs.shape != articles.shape
    assert docs.words != articles.words
    assert docs.described == articles.described
    assert docs == subject_of(Word("a"), 10, b"{}", collection="docs")
