"""The rules of style that no linter has."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parent.parent
PACKAGES: Final = ("root", "leaf", "index_data", "bench")

FUNCTION_LINES_MAX: Final = 70
"""What fits on a screen."""

FUNCTION_LINES_MEDIAN_MAX: Final = 8
"""In code that reads well, half of the functions are this short."""

FILE_LINES_MAX: Final = 400
"""Past this a file has more than one subject."""

EMPTY_NAMES: Final = re.compile(r"(Manager|Helper|Util|Utils|Handler)$")
"""Names that say nothing about what a thing is."""

UNFINISHED: Final = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> list[Path]:
    """Every Python file below the folders."""
    return sorted(path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, nested ones and methods included."""
    tree = ast.parse(path.read_bytes())
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def body_lines(function: Function) -> int:
    """Lines of a function's body without its docstring: a good explanation is no burden."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def name_of(path: Path) -> str:
    """A file as a test's name shows it."""
    return str(path.relative_to(REPOSITORY))


every_file = pytest.mark.parametrize("path", sources(*PACKAGES, "tests"), ids=name_of)
every_product_file = pytest.mark.parametrize("path", sources(*PACKAGES), ids=name_of)
every_test_file = pytest.mark.parametrize("path", sources("tests"), ids=name_of)


@every_file
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    """A function has at most FUNCTION_LINES_MAX lines, docstring apart."""
    assert not {f.name for f in functions(path) if body_lines(f) > FUNCTION_LINES_MAX}


@every_file
def test_no_file_is_too_long(path: Path) -> None:
    """A file has at most FILE_LINES_MAX lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LINES_MAX


@every_file
def test_nothing_is_left_for_later(path: Path) -> None:
    """What is not finished is not there."""
    assert not UNFINISHED.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PACKAGES)
def test_most_functions_are_short(package: str) -> None:
    """The median function of a package is short."""
    lines = [body_lines(f) for path in sources(package) for f in functions(path)]
    assert statistics.median(lines) <= FUNCTION_LINES_MEDIAN_MAX


@every_product_file
def test_names_say_what_a_thing_is(path: Path) -> None:
    """No class is called a Manager, no module is a drawer for odds and ends."""
    tree = ast.parse(path.read_bytes())
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if EMPTY_NAMES.search(name)]
    assert path.stem not in {"common", "utils", "util", "helpers", "misc"}


@every_test_file
def test_every_test_states_its_rule(path: Path) -> None:
    """A test has a docstring: the sentence that it proves."""
    tests = [f for f in functions(path) if f.name.startswith("test_")]
    assert not [f.name for f in tests if not ast.get_docstring(f)]


@every_test_file
def test_no_test_sleeps(path: Path) -> None:
    """Only tests of real processes may wait in real time."""
    if {"live", "browser"} & set(path.parts):
        return
    calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
    assert not [call for call in calls if ast.unparse(call.func) == "time.sleep"]


@pytest.mark.parametrize("package", PACKAGES)
def test_tests_mirror_the_tree(package: str) -> None:
    """tests/package/test_module*.py is about package/module.py."""
    modules = {path.stem.strip("_") for path in sources(package)} | {"main"}
    for path in sources(f"tests/{package}"):
        subject = path.stem.removeprefix("test_")
        assert path.stem == "conftest" or any(
            subject == module or subject.startswith(f"{module}_") for module in modules
        ), f"{name_of(path)} is about no module of {package}"
