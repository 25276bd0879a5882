"""What is not documented does not exist: a setting, metric or route without its line fails."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from leaf.protocol import CHANNEL_PATH

REPOSITORY: Final = Path(__file__).parent.parent
DOCS: Final = REPOSITORY / "docs"
COMMANDS: Final = ("root", "leaf", "index_data", "bench")
PAGES: Final = sorted([REPOSITORY / "README.md", *DOCS.rglob("*.md")])


def read(*names: str) -> str:
    """The text of pages below docs/."""
    return "\n".join((DOCS / name).read_text(encoding="utf-8") for name in names)


def parameters(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Every option of a command and its subcommands, with the command it belongs to."""
    if isinstance(command, click.Group):
        for name, sub in command.commands.items():
            yield from parameters(sub, f"{path} {name}")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield path, max(parameter.opts, key=len)


def section(text: str, heading: str) -> str:
    """The part of a page below a heading, up to the next one of the same level."""
    found = re.search(
        rf"^(#+) {re.escape(heading)}$(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"no section {heading!r}"
    return found[2]


def calls(file: str, names: set[str]) -> list[str]:
    """First argument of every call of one of ``names`` in a file, where it is a string."""
    tree = ast.parse((REPOSITORY / file).read_bytes())
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in names
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def metric_files() -> list[str]:
    """Files that define metrics."""
    return [
        str(path.relative_to(REPOSITORY))
        for package in COMMANDS
        for path in sorted((REPOSITORY / package).rglob("*.py"))
        if "prometheus_client" in path.read_text(encoding="utf-8")
    ]


def metric_names() -> set[str]:
    """Every metric that root and leaves export."""
    kinds = {"Counter", "Gauge", "Histogram", "Summary"}
    kinds |= {f"{kind}MetricFamily" for kind in kinds}
    names = {name for file in metric_files() for name in calls(file, kinds)}
    return {name.removesuffix("_total") for name in names if name.startswith("hedgerow_")}


@pytest.mark.parametrize("package", COMMANDS)
def test_every_option_is_documented(package: str) -> None:
    """Each option of each command stands in the section of its command."""
    main = importlib.import_module(f"{package}.__main__").main
    operations = read("operations.md")
    missing = [
        f"{path} {option}"
        for path, option in parameters(main, f"python -m {package}")
        if f"`{option}" not in section(operations, f"`{path}`")
    ]
    assert not missing


def test_every_metric_is_documented() -> None:
    """Each exported metric stands in the table of metrics, and no other does."""
    table = section(read("operations.md"), "Metrics")
    documented = {name.removesuffix("_total") for name in re.findall(r"`(hedgerow_\w+)", table)}
    assert documented == metric_names()
    assert documented


@pytest.mark.parametrize("package", ["root", "leaf"])
def test_every_route_is_documented(package: str) -> None:
    """Each HTTP route stands on the page of the API."""
    page = read("api.md")
    routes = {
        route.replace(":path}", "}").replace(":int}", "}")
        for path in (REPOSITORY / package).rglob("*.py")
        for route in calls(str(path.relative_to(REPOSITORY)), {"Route"})
    }
    assert routes
    assert not {route for route in routes | {CHANNEL_PATH} if f"{route}`" not in page}


def test_every_environment_variable_is_documented() -> None:
    """Each HEDGEROW_ variable that anything reads stands on the page of operations."""
    files = [REPOSITORY / "Makefile", REPOSITORY / "Procfile"]
    files += [path for package in COMMANDS for path in (REPOSITORY / package).rglob("*.py")]
    names = {
        name
        for path in files
        for name in re.findall(r"\bHEDGEROW_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    page = read("operations.md")
    assert not {name for name in names if f"`{name}`" not in page}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the repository finds it."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert not [link for link in local if not (page.parent / link).exists()]


def test_the_map_names_files_that_there_are() -> None:
    """What to change, where it is, and what tests it."""
    rows = re.findall(r"(?m)^\| .* \|$", section(read("architecture.md"), "Where to look"))
    assert len(rows) > 10
    for row in rows:
        *_, code, tests, _ = row.split("|")
        named = re.findall(r"`([^`]+)`", code + tests)
        assert named or row == rows[0]
        assert not [name for name in named if not (REPOSITORY / name).exists()]


def test_shell_commands_are_quoted() -> None:
    """What a shell would take for something else than text stands in quotes."""
    for page in PAGES:
        commands = re.findall(r"(?m)^\$? ?(curl .*)$", page.read_text(encoding="utf-8"))
        for command in commands:
            bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
            assert not re.search(r"[?&*\[\]{}'\"]", bare), (page.name, command)


def test_every_make_target_exists() -> None:
    """The targets that the documents name are in the Makefile."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    named = {
        target
        for page in pages
        for target in re.findall(r"(?m)(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert {"run", "test", "lint", "bench"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_results_say_that_they_are_generated() -> None:
    """By which command and at which commit: nothing there is typed by hand."""
    page = DOCS / "results.md"
    if page.exists():
        first = page.read_text(encoding="utf-8").split("\n\n")[1]
        assert re.match(r"Generated by `python -m bench all[^`]*` at commit `\w+\+?` in ", first)


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    """A file, its heading and its line of the list have one number."""
    files = sorted((DOCS / "decisions").glob("0*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^(\d+)\. \[(.*)\]\((.*)\)$", listed)
    headings = [path.read_text(encoding="utf-8").partition("\n")[0] for path in files]
    assert [f"# {number}. {title}" for number, title, _ in lines] == headings
    assert [name for *_, name in lines] == [path.name for path in files]
