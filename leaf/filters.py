"""Filters as tantivy takes them: they decide who matches and leave every score as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import tantivy

from index_data.manifest import Field, FieldType
from index_data.schema import ID_FIELD, ORDINAL_FIELD
from leaf.errors import BadQuery
from leaf.selection import ID, Among, Between, Condition, Present, SortKey, SortValue, Value

_RANGED: Final[Mapping[FieldType, tantivy.FieldType]] = {
    "integer": tantivy.FieldType.Integer,
    "date": tantivy.FieldType.Integer,
    "float": tantivy.FieldType.Float,
}

Filters = Sequence[tuple[tantivy.Occur, tantivy.Query]]
"""Parts of a boolean query that add nothing to its score."""


class FilterMaker:
    """Makes filters on the fields of one generation."""

    def __init__(self, fields: Iterable[Field], schema: tantivy.Schema) -> None:
        self._fields = {field.name: field for field in fields}
        self._schema = schema

    def filters(self, conditions: Iterable[Condition]) -> Filters:
        """Return the filters of conditions that all have to hold. Raises BadQuery."""
        return [self.filter(condition) for condition in conditions]

    def filter(self, condition: Condition) -> tuple[tantivy.Occur, tantivy.Query]:
        """Return the filter of a condition. Raises BadQuery."""
        try:
            found = self._match(condition)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadQuery(f"filter: {condition.field!r}: {error}") from error
        if condition.negated:
            return tantivy.Occur.MustNot, found
        return tantivy.Occur.Must, tantivy.Query.const_score_query(found, 0.0)

    def field(self, name: str) -> Field:
        """Return a field that is no text. Raises BadQuery."""
        field = self._fields.get(name)
        if field is None or field.type == "text":
            raise BadQuery(f"there is no field {name!r} to filter, sort or count by")
        return field

    def beyond(self, ordinal: int) -> tantivy.Query:
        """Return the query of documents of a higher ordinal."""
        return self._ordinals(ordinal, None)

    def further(self, searcher: tantivy.Searcher, key: SortKey, value: SortValue) -> tantivy.Query:
        """Return the query of what comes strictly after a value in a sort. Raises BadQuery."""
        if value is None:
            return tantivy.Query.empty_query()
        if key.field == ID:
            if isinstance(value, str | bool):
                raise BadQuery("after must have ordinals for ids")
            bounds = (None, int(value)) if key.descending else (int(value), None)
            return self._ordinals(*bounds)
        _, lacking = self.filter(Present(key.field, negated=True))
        absent = tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, tantivy.Query.all_query()), (tantivy.Occur.MustNot, lacking)]
        )
        present = self._past(searcher, key, value)
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, present), (tantivy.Occur.Should, absent)]
        )

    def _past(self, searcher: tantivy.Searcher, key: SortKey, value: Value) -> tantivy.Query:
        """Return the query of what has a value strictly after another."""
        if not isinstance(value, str | bool):
            low, high = (None, value) if key.descending else (value, None)
            past = Between(key.field, low, high, low is not None, high is not None)
            return self.filter(past)[1]
        listed: Sequence[Value] = (False, True)
        if isinstance(value, str):
            # There are no ranges over text, but its values in a shard are a list.
            listed = [term for term, _ in searcher.terms_with_prefix(key.field, "")]
        after = [one for one in listed if (one < value if key.descending else one > value)]  # type: ignore[operator]
        return tantivy.Query.term_set_query(self._schema, key.field, after)

    def _ordinals(self, low: int | None, high: int | None) -> tantivy.Query:
        """Return the query of documents whose ordinals lie between two, exclusively."""
        try:
            return tantivy.Query.range_query(
                self._schema,
                ORDINAL_FIELD,
                tantivy.FieldType.Unsigned,
                low,
                high,
                include_lower=low is None,
                include_upper=high is None,
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise BadQuery(f"after: {error}") from error

    def _match(self, condition: Condition) -> tantivy.Query:
        if isinstance(condition, Among) and condition.field == ID:
            return self._among(condition, ID_FIELD)
        field = self.field(condition.field)
        match condition:
            case Among():
                return self._among(condition, condition.field)
            case Between():
                return self._between(condition, field)
            case Present():
                return tantivy.Query.exists_query(condition.field)

    def _among(self, condition: Among, name: str) -> tantivy.Query:
        terms = [
            tantivy.Query.term_query(self._schema, name, value, "basic")
            for value in condition.values
        ]
        if len(terms) == 1:
            return terms[0]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])

    def _between(self, condition: Between, field: Field) -> tantivy.Query:
        ranged = _RANGED.get(field.type)
        if ranged is None:
            raise BadQuery(f"{field.name!r} has no order to range over")
        if condition.low is None and condition.high is None:
            return tantivy.Query.exists_query(field.name)
        return tantivy.Query.range_query(
            self._schema,
            field.name,
            ranged,
            condition.low,
            condition.high,
            not condition.low_open,
            not condition.high_open,
        )


def restricted(query: tantivy.Query, filters: Filters) -> tantivy.Query:
    """Return a query that matches what passes the filters too, with the same scores."""
    if not filters:
        return query
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *filters])
