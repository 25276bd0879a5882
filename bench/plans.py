"""Interference plans changed for a benchmark: run faster, or without one of their rules."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from leaf.interference import Plan


def without(plan: Plan, rule: str) -> Plan:
    """The plan without the rule of that name. Raises ValueError where it has none."""
    rules = tuple(one for one in plan.rules if one.name != rule)
    if len(rules) == len(plan.rules):
        raise ValueError(f"there is no rule {rule!r}")
    return msgspec.structs.replace(plan, rules=rules)


def scaled(plan: Plan, scale: float) -> Plan:
    """The plan with all its times so many times as long: what lasts, and when."""
    raw = msgspec.to_builtins(plan)
    for rule in raw["rules"]:
        _scale(rule.get("takes", {}), "_ms", scale)
        _scale(rule.get("takes", {}), "ms", scale)
        _scale(rule["when"], "_s", scale)
    return msgspec.convert(raw, Plan)


def _scale(members: dict[str, object], unit: str, scale: float) -> None:
    for name, value in members.items():
        if isinstance(value, float) and (name == unit or (unit[0] == "_" and name.endswith(unit))):
            members[name] = value * scale


@contextlib.contextmanager
def as_file(plan: Plan) -> Iterator[str]:
    """A file with the plan, for the option ``--interference`` of a leaf."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-plan-") as folder:
        path = Path(folder) / "plan.json"
        path.write_bytes(msgspec.json.encode(plan))
        yield str(path)
