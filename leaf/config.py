"""The settings of one leaf, validated when made."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from index_data.placement import (
    BY_THE_RULE,
    LEAVES_MAX,
    SHARDS_MAX,
    BadPlacement,
    Chosen,
    holders,
)
from leaf.admission import QUEUE_LEGS_MAX
from leaf.errors import BadSetting
from leaf.logs import Format
from leaf.plans import SeededPlan
from leaf.protocol import COLLECTION_NAME, COLLECTIONS_MAX, DEFAULT_COLLECTION
from leaf.pulse import BLOCKED_MS, BLOCKED_MS_MAX
from leaf.workers import WORKERS_MAX

PORT_MAX: Final = 65_535
QUEUE_LEGS_CEILING: Final = 1_000_000
"""A longer queue is minutes of work: nobody waits for its end."""

GENERATIONS_MAX: Final = 10
"""Each is a whole index; only the newest two are ever asked for."""

NAME_CHARS_MAX: Final = 100

TOKEN_CHARS_MIN: Final = 16
"""A shorter token is a password, and could be guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which leaf of how many this is: from that alone it knows what it holds.

    Raises BadSetting.
    """

    ordinal: int
    leaves: int
    replicas: int

    def __post_init__(self) -> None:
        """Refuse a place that does not exist."""
        _check_range("--of", self.leaves, 1, LEAVES_MAX)
        _check_range("--ordinal", self.ordinal, 0, self.leaves - 1)
        _check_range("--replicas", self.replicas, 1, self.leaves)

    def shards(self, total: int) -> tuple[int, ...]:
        """Return the numbers of the shards to hold by the rule, of ``total``. Raises BadSetting."""
        return tuple(
            shard for shard, held in enumerate(self.holders(total)) if self.ordinal in held
        )

    def holders(self, total: int, chosen: Chosen = BY_THE_RULE) -> tuple[tuple[int, ...], ...]:
        """Return the ordinals of the leaves that hold each of ``total`` shards. Raises BadSetting.

        ``chosen`` as in ``index_data.placement``.
        """
        try:
            return holders(shards=total, leaves=self.leaves, replicas=self.replicas, chosen=chosen)
        except BadPlacement as error:
            raise BadSetting(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How one leaf runs. Exactly one of ``indexes`` and ``canned`` is set; ``indexes`` has the
    folder of each collection by its name, in order.

    ``watch``: whether what operators look at is counted and timed.

    ``generations``: how many of the newest are opened at the start. ``in_step``: background
    work is done at moments that are the same for all leaves.

    ``interference`` is the trouble that is injected from the start. With an ``admin_token`` it
    can be switched while the leaf runs; ``seed`` is then that of plans that name none.

    Raises BadSetting.
    """

    place: Place
    port: int
    indexes: Mapping[str, Path] = field(default_factory=dict)
    canned: int | None = None
    host: str = "127.0.0.1"
    workers: int = os.cpu_count() or 1
    queue_legs: int = QUEUE_LEGS_MAX
    name: str = ""
    domain: str = ""
    log_format: Format = "text"
    blocked_ms: float = BLOCKED_MS
    watch: bool = True
    interference: SeededPlan | None = None
    seed: int = 0
    admin_token: str = ""
    generations: int = 2
    in_step: bool = False

    def __post_init__(self) -> None:
        """Refuse what no leaf can run with, and fill in the names."""
        if bool(self.indexes) == (self.canned is not None):
            raise BadSetting("give either --index DIR or --canned SHARDS")
        if self.canned is not None:
            _check_range("--canned", self.canned, 1, SHARDS_MAX)
        _check_range("--port", self.port, 1, PORT_MAX)
        _check_range("--workers", self.workers, 1, WORKERS_MAX)
        _check_range("--generations", self.generations, 1, GENERATIONS_MAX)
        _check_range("--queue-legs", self.queue_legs, 1, QUEUE_LEGS_CEILING)
        _check_range("--blocked-ms", self.blocked_ms, 1, BLOCKED_MS_MAX)
        if self.admin_token and len(self.admin_token) < TOKEN_CHARS_MIN:
            raise BadSetting(f"the admin token must have at least {TOKEN_CHARS_MIN} characters")
        name = self.name or f"leaf{self.place.ordinal}"
        object.__setattr__(self, "name", _check_name("--name", name))
        object.__setattr__(self, "domain", _check_name("--domain", self.domain or name))

    @property
    def collections(self) -> tuple[str, ...]:
        """The names of the collections that the leaf serves."""
        return tuple(self.indexes) or (DEFAULT_COLLECTION,)


def read_indexes(given: Iterable[str]) -> dict[str, Path]:
    """Return the folder of each collection by its name, from texts like ``docs=DIR``; one without
    a name is the collection ``default``. A folder whose path has ``=`` before any ``/`` is
    written with ``./``. Raises BadSetting.
    """
    indexes: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals or "/" in name:
            name, folder = DEFAULT_COLLECTION, text
        if re.search(COLLECTION_NAME, name) is None:
            raise BadSetting(
                f"--index {text}: a collection's name is 1 to 40 of a-z, 0-9, _ and -, not {name!r}"
            )
        if not folder:
            raise BadSetting(f"--index {text}: names no folder")
        if name in indexes:
            raise BadSetting(f"--index {text}: the collection {name!r} is given twice")
        if Path(folder).resolve() in {known.resolve() for known in indexes.values()}:
            raise BadSetting(f"--index {text}: the folder is that of another collection")
        indexes[name] = Path(folder)
    if len(indexes) > COLLECTIONS_MAX:
        raise BadSetting(f"--index is given {len(indexes)} times, most {COLLECTIONS_MAX}")
    return indexes


def read_token(file: Path | None, given: str) -> str:
    """Return the admin token: that in the file, or else the one given. Raises BadSetting."""
    if file is None:
        return given.strip()
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"--admin-token-file {file}: cannot be read: {error}") from error
    if not token:
        raise BadSetting(f"--admin-token-file {file}: is empty")
    return token


def _check_range(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise BadSetting(f"{option} must be between {least} and {most}, not {value}")


def _check_name(option: str, name: str) -> str:
    if not name.isprintable() or not name.strip() or len(name) > NAME_CHARS_MAX:
        raise BadSetting(f"{option} must be 1 to {NAME_CHARS_MAX} printable characters")
    return name


ALONE: Final = Place(ordinal=0, leaves=1, replicas=1)
"""The place of a leaf that is all there is."""
