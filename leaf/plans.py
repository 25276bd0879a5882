"""Plans of trouble as people write them: TOML or JSON, in a file, shipped, or sent.

Whatever is wrong with one is said in one sentence that names the source, the rule and the
field: BadSetting.
"""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from leaf.errors import BadSetting, field_of
from leaf.interference import Plan

PLAN_BYTES_MAX: Final = 64 * 1024
"""A plan that a person can still follow is far shorter."""

SUFFIX: Final = ".toml"


class SeededPlan(NamedTuple):
    """A plan, what it is called, and the seed that decides what it does."""

    name: str
    plan: Plan
    seed: int

    @property
    def notice(self) -> str:
        """What everybody is told while it is in force."""
        return (
            f"INTERFERENCE {self.name}, seed {self.seed}: trouble is injected on purpose; "
            "neither answers nor times of this leaf are real"
        )


def shipped() -> list[str]:
    """Return the names of the profiles that come with Hedgerow."""
    return sorted(
        entry.name.removesuffix(SUFFIX)
        for entry in _folder().iterdir()
        if entry.name.endswith(SUFFIX)
    )


def profile(name: str) -> Plan:
    """Return a shipped profile. Raises BadSetting."""
    if name not in shipped():
        names = ", ".join(shipped())
        raise BadSetting(f"there is no interference profile {name[:100]!r}; there are {names}")
    return read(_folder().joinpath(name + SUFFIX).read_text(encoding="utf-8"), name)


def load(name_or_file: str) -> Plan:
    """Return a shipped profile, or the plan in a file: a path has a dot or a slash in it.

    Raises BadSetting.
    """
    if not {".", "/"} & set(name_or_file):
        return profile(name_or_file)
    path = Path(name_or_file)
    try:
        with path.open("rb") as file:
            data = file.read(PLAN_BYTES_MAX + 1)
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadSetting(f"{path}: is no text in UTF-8") from error
    except OSError as error:
        raise BadSetting(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > PLAN_BYTES_MAX:
        raise BadSetting(f"{path}: is over {PLAN_BYTES_MAX} bytes")
    return read(text, str(path))


def read(text: str, source: str) -> Plan:
    """Return the plan that a text in TOML or JSON describes. Raises BadSetting."""
    try:
        raw = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        return msgspec.convert(raw, Plan)
    except msgspec.ValidationError as error:
        raise BadSetting(f"{source}: {_where(str(error), raw)}") from error
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"{source}: is neither TOML nor JSON: {error}") from error


def _where(complaint: str, raw: Any) -> str:
    """Return a decoder's complaint with the rule and the field named as their author does."""
    what, _, _ = complaint.partition(" - at `")
    field = field_of(complaint)
    if not field.startswith("rules["):
        return f"{field}: {what}"
    number, _, member = field.removeprefix("rules[").partition("]")
    rule = raw["rules"][int(number)]
    name = rule.get("name") if isinstance(rule, dict) else None
    called = f" ({name[:100]!r})" if isinstance(name, str) else ""
    return f"rule {int(number) + 1}{called}, {member.lstrip('.') or 'itself'}: {what}"


def _folder() -> Traversable:
    return files("leaf").joinpath("profiles")
