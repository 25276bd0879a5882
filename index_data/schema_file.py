"""A schema as a small TOML file: read with every fault named, and written for people to edit.

id = "isbn"                 # the member that names a document; "id" if this is left out

[fields.title]
type = "text"
weight = 3
language = "german"

[fields.tags]
type = "keyword"
multiple = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

import msgspec

from index_data.analysis import NO_LANGUAGE, STEMMED, WITH_STOP_WORDS
from index_data.manifest import Analysis, Field, FieldType, IndexDataError
from index_data.schema import FIELDS_MAX, is_field_name

WEIGHT_MAX: Final = 1000.0
FILE_BYTES_MAX: Final = 1 << 20
"""Sixty-four fields take a few kilobytes."""

DEFAULT_ID: Final = "id"
LANGUAGES: Final = (*STEMMED, NO_LANGUAGE)
_TYPES: Final = get_args(FieldType)
_OF_TEXT: Final = ("language", "stop_words", "fold_accents")
_OPTIONS: Final = ("type", "weight", "default", "multiple", *_OF_TEXT)


class BadSchema(IndexDataError):
    """A schema that cannot be; the sentence names file, member, and what may stand there."""


class SchemaFile(msgspec.Struct, frozen=True):
    """What a schema file says: the member that names a document, and the fields."""

    id_field: str
    fields: tuple[Field, ...]


# --- reading -----------------------------------------------------------------------------


def read_schema(path: Path) -> SchemaFile:
    """Read a schema file. Raises BadSchema."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadSchema(f"The schema {path} is too large to be one.")
        table = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise BadSchema(f"The schema {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSchema(f"The schema {path} is not TOML: {error}.") from error
    try:
        return schema_of(table)
    except BadSchema as error:
        raise BadSchema(f"{path.name}: {error}") from None


def schema_of(table: Mapping[str, Any]) -> SchemaFile:
    """Return the schema in a parsed file. Raises BadSchema."""
    _check_names("the schema", table, ("id", "fields"))
    identity = table.get("id", DEFAULT_ID)
    if not isinstance(identity, str) or not identity:
        raise BadSchema(f"id must be the name of a member, not {identity!r:.40}.")
    listed = table.get("fields")
    if not isinstance(listed, dict) or not listed:
        raise BadSchema("there are no fields: give each a table such as [fields.title].")
    return SchemaFile(identity, checked([_field(name, said) for name, said in listed.items()]))


def checked(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return fields that make a schema together. Raises BadSchema."""
    found = tuple(fields)
    if not any(field.scored and field.default for field in found):
        raise BadSchema("nothing is searched by default: at least one field must be text.")
    if len(found) > FIELDS_MAX:
        raise BadSchema(f"there are {len(found)} fields; {FIELDS_MAX} is the most.")
    return found


def _field(name: str, said: Any) -> Field:
    path = f"fields.{name}"
    if not is_field_name(name):
        raise BadSchema(f"{path:.80}: a name is a letter, then up to 63 letters, digits or _.")
    if not isinstance(said, dict):
        raise BadSchema(f"{path} must be a table, not {said!r:.40}.")
    _check_names(path, said, _OPTIONS)
    kind = said.get("type")
    if kind not in _TYPES:
        raise BadSchema(f"{path}.type must be one of {', '.join(_TYPES)}, not {kind!r:.40}.")
    weight = _option(path, said, "weight", 1.0, _is_weight, f"a number from 0 to {WEIGHT_MAX:g}")
    field = Field(
        name,
        cast("FieldType", kind),
        weight=float(weight),
        default=_switch(path, said, "default", default=kind == "text"),
        multiple=_switch(path, said, "multiple"),
        analysis=_analysis(path, said),
    )
    _check_use(path, field, said)
    return field


def _check_use(path: str, field: Field, said: Mapping[str, Any]) -> None:
    """Refuse options that would do nothing: somebody believes that they do something."""
    if field.type != "text":
        for name in _OF_TEXT:
            if name in said:
                raise BadSchema(f"{path}.{name} is for text; the field is {field.type}.")
    if not field.scored:
        for name in ("weight", "default"):
            if name in said:
                raise BadSchema(f"{path}.{name} is for text and keywords, not for {field.type}.")


def _analysis(path: str, said: Mapping[str, Any]) -> Analysis:
    language = said.get("language", Analysis().language)
    if language not in LANGUAGES:
        raise BadSchema(
            f"{path}.language must be one of {', '.join(LANGUAGES)}, not {language!r:.40}."
        )
    stop_words = _switch(path, said, "stop_words")
    if stop_words and language not in WITH_STOP_WORDS:
        raise BadSchema(
            f"{path}.stop_words: there is no list for {language}; "
            f"there are lists for {', '.join(WITH_STOP_WORDS)}."
        )
    return Analysis(language, stop_words, _switch(path, said, "fold_accents", default=True))


def _check_names(path: str, said: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in said:
        if name not in known:
            raise BadSchema(f"{path} knows no {name!r:.40}; there are {', '.join(known)}.")


def _switch(path: str, said: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    return bool(_option(path, said, name, default, lambda v: isinstance(v, bool), "true or false"))


def _option(
    path: str,
    said: Mapping[str, Any],
    name: str,
    default: Any,
    fits: Callable[[Any], bool],
    wanted: str,
) -> Any:
    value = said.get(name, default)
    if not fits(value):
        raise BadSchema(f"{path}.{name} must be {wanted}, not {value!r:.40}.")
    return value


def _is_weight(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0.0 < value <= WEIGHT_MAX


# --- writing -----------------------------------------------------------------------------


def written(schema: SchemaFile) -> str:
    """Return a schema as TOML; reading it gives the same schema."""
    blocks = [f"id = {_quoted(schema.id_field)}\n"]
    blocks += [_block(field) for field in schema.fields]
    return "\n".join(blocks)


def _block(field: Field) -> str:
    options = {"type": _quoted(field.type)}
    if field.scored and field.weight != 1.0:
        options["weight"] = f"{field.weight:g}"
    if field.scored and field.default != (field.type == "text"):
        options["default"] = _truth(field.default)
    if field.multiple:
        options["multiple"] = _truth(field.multiple)
    if field.type == "text":
        options["language"] = _quoted(field.analysis.language)
        if field.analysis.stop_words:
            options["stop_words"] = _truth(field.analysis.stop_words)
        if not field.analysis.fold_accents:
            options["fold_accents"] = _truth(field.analysis.fold_accents)
    lines = [f"[fields.{field.name}]", *(f"{name} = {said}" for name, said in options.items())]
    return "\n".join(lines) + "\n"


def _truth(value: bool) -> str:  # noqa: FBT001 - the value is the subject
    return "true" if value else "false"


def _quoted(text: str) -> str:
    """Return a basic string of TOML; JSON's escapes are among its own."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
