"""Which tokens a snippet marks: those that the query has found."""

from __future__ import annotations

import tantivy
from hypothesis import example, given
from hypothesis import strategies as st

from index_data.plan import Alike, Clause
from leaf.wanted import NOT_WANTED, Wanted, is_near


def test_known_tokens_are_wanted_as_they_are() -> None:
    """Those of words and phrases, and those before a beginning."""
    wanted = NOT_WANTED.and_of(Clause(0, "body", ("file", "like"), 1.0))
    wanted = wanted.and_of(Alike(1, "body", ("json", "dum"), 0, True, 1.0))
    wanted = wanted.and_of(Alike(2, "body", ("parse",), 0, False, 1.0))
    assert all(token in wanted for token in ("file", "like", "json", "dum", "dumps", "parse"))
    assert not any(token in wanted for token in ("files", "jsons", "du", "parser", "", 7))


def test_what_is_nearly_a_fuzzy_word_is_wanted() -> None:
    """Up to its distance."""
    wanted = NOT_WANTED.and_of(Alike(0, "body", ("jsno",), 1, False, 1.0))
    assert all(token in wanted for token in ("jsno", "json", "jso", "jsnoo"))
    assert not any(token in wanted for token in ("jsn0o1", "son"))
    assert "json" not in NOT_WANTED
    assert "json" in Wanted(nearly=(("xyz", 1), ("jsn", 1)))


tokens = st.text("ab日", min_size=1, max_size=7)


@given(one=tokens, other=tokens, distance=st.integers(1, 2))
@example("ab", "ba", 1)
@example("abab", "baab", 1)
@example("ab", "baa", 1)
@example("ca", "abc", 2)
def test_near_is_what_the_index_calls_near(one: str, other: str, distance: int) -> None:
    """A snippet marks what tantivy's automaton has accepted, and nothing else."""
    schema = tantivy.SchemaBuilder().add_text_field("t", tokenizer_name="raw").build()
    index = tantivy.Index(schema)
    writer = index.writer(num_threads=1)
    document = tantivy.Document()
    document.add_text("t", one)
    writer.add_document(document)
    writer.commit()
    index.reload()
    query = tantivy.Query.fuzzy_term_query(schema, "t", other, distance, True, False)
    assert is_near(one, other, distance) == bool(index.searcher().search(query, 1).hits)
