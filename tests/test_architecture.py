"""The floors that import-linter cannot see: what is pure, and that no imports go in circles."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parent.parent
PACKAGES: Final = ("root", "leaf", "index_data", "bench")

DECISIONS: Final = (
    *("errors", "topology", "latency", "budget", "hedging"),
    *("pace", "probation", "ranking", "conduct", "ledger", "race", "gather", "enough", "merge"),
)
"""Modules of the root that decide: values in, values out."""

PURE: Final = (
    *(f"root.{name}" for name in DECISIONS),
    *("root.query", "root.requests", "root.pursuit", "root.answer", "root.rehearsal"),
    *("root.shapes", "root.canary", "root.language", "root.printing", "root.live", "root.slow"),
    *("root.openapi", "root.catalogue", "root.bodies", "root.states"),
    *("root.export_pages", "root.similar"),
    *("root.selection", "root.facets", "root.ordering", "root.cursor", "root.paging"),
    *("root.suggesting", "root.reading", "leaf.suggestion"),
    *("leaf.chance", "leaf.laws", "leaf.interference"),
    *(
        "leaf.protocol",
        "leaf.selection",
        "leaf.sketch",
        "leaf.admission",
        "leaf.ties",
        "index_data.placement",
        "index_data.partition",
        "index_data.rebalance",
        "index_data.ranges",
    ),
)

IMPURE: Final = frozenset({"asyncio", "time", "datetime", "logging", "threading", "socket"})
"""Clock, log, loop and wire: all of these are handed in, or belong to the hands."""

NO_TANTIVY: Final = (
    *("index_data.manifest", "index_data.ranges", "index_data.placement", "index_data.partition"),
    *("index_data.placement_file", "index_data.rebalance", "index_data.load"),
)


def path_of(module: str) -> Path:
    """The file of a module."""
    return REPOSITORY / Path(*module.split(".")).with_suffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    """Every module a file names in an import, ``from a import b`` as both a and a.b."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level) if level:
                pytest.fail(f"{path}: relative imports hide which floor is meant")


def modules() -> dict[str, set[str]]:
    """Every module of ours, with those of ours that it imports."""
    files = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*.py")
    }
    return {
        module: {name for name in imports_of(path) if name in files and name not in PACKAGES}
        for module, path in files.items()
    }


@pytest.mark.parametrize("module", PURE)
def test_a_decision_is_plain_synchronous_code(module: str) -> None:
    """A pure module imports no clock, no log, no loop and no wire."""
    roots = {name.partition(".")[0] for name in imports_of(path_of(module))}
    assert not roots & IMPURE


@pytest.mark.parametrize("module", PURE)
def test_a_decision_has_no_chance_of_its_own(module: str) -> None:
    """A pure module may name the type of the generator it is handed, and make none."""
    names = {name for name in imports_of(path_of(module)) if name.partition(".")[0] == "random"}
    assert names <= {"random", "random.Random"}
    tree = ast.parse(path_of(module).read_bytes())
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {"Random", "random.Random"} & calls
    assert not [node for node in ast.walk(tree) if ast.unparse(node) == "import random"]


@pytest.mark.parametrize("module", PURE)
def test_a_decision_awaits_nothing(module: str) -> None:
    """A pure module defines no coroutine."""
    tree = ast.parse(path_of(module).read_bytes())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_of_the_root_stand_on_decisions(name: str) -> None:
    """A pure module of the root imports of ours only pure ones and the two contracts."""
    allowed = {f"root.{pure}" for pure in DECISIONS} | {"leaf.protocol", "index_data.manifest"}
    assert modules()[f"root.{name}"] <= allowed


@pytest.mark.parametrize("module", NO_TANTIVY)
def test_what_the_root_reads_of_the_index_knows_no_tantivy(module: str) -> None:
    """Manifest, placement and partition are about documents, not about how they are searched."""
    assert "tantivy" not in {name.partition(".")[0] for name in imports_of(path_of(module))}


def test_imports_go_downwards_only() -> None:
    """No module imports itself through others."""
    graphlib.TopologicalSorter(modules()).prepare()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(package: str) -> None:
    """Type checkers of those who use a package see its types."""
    assert (REPOSITORY / package / "py.typed").exists()
