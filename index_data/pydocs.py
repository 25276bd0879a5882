"""The documentation of the Python that runs this: every docstring of its standard library
and installed packages.

Sources are parsed, never imported, so nothing of theirs is executed. An object without a
docstring is no document. An object defined more than once in a file (overloads, branches on
the platform, setters) is one document, the first that is documented. Test suites are left
out, and so are vendored copies, and what stands inside functions: nobody can look it up by
name.
"""

from __future__ import annotations

import ast
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from index_data.manifest import Field
from index_data.sources import BadLine, BadSource, Collection, Document

FIELDS: Final = (
    Field("name", "text", weight=0.5),
    Field("path", "text", weight=4.0),
    Field("signature", "text", weight=0.25),
    Field("body", "text", weight=1.0),
    Field("module", "keyword", default=False),
    Field("kind", "keyword", default=False),
    Field("lines", "integer", default=False),
    Field("has_examples", "boolean", default=False),
)
"""Weights were chosen among 240 combinations by where fourteen things that people look for
came in the list ("parse json" for json.loads, "copy file" for shutil.copyfile). The path
holds the name already, so the name adds little."""

PROMPT: Final = ">>> "
"""Of the interpreter: what follows in a docstring is an example."""

FILE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Four times the largest source file met in an installed package; the rest is data."""

_TESTS: Final = frozenset({"test", "tests", "idle_test"})
_NOT_PACKAGES: Final = frozenset({"site-packages", "dist-packages", "lib-dynload", "_vendor"})
_WORD_STARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def pydocs(folders: tuple[Path, ...] | None = None) -> Collection:
    """Return the collection of all docstrings under folders on the import path.

    ``folders`` None means those of the running Python. Raises BadSource.
    """
    roots = _running_python() if folders is None else folders
    if not any(root.is_dir() for root in roots):
        raise BadSource(f"There are no Python sources in {', '.join(map(str, roots))}.")

    def read() -> Iterator[Document | BadLine]:
        for root in roots:
            for file in sorted(_source_files(root), key=lambda file: file.parts):
                yield from _documents_of_file(file, root)

    return Collection("pydocs", f"Python {platform.python_version()}", FIELDS, read)


def _running_python() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(Path(paths[name]) for name in ("stdlib", "purelib", "platlib")))


def _source_files(folder: Path) -> Iterator[Path]:
    """Yield the source files of modules and packages under a folder, in no order."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir() and _is_package_name(entry.name):
            yield from _source_files(entry)
        elif entry.suffix == ".py" and (entry.stem.isidentifier()) and entry.stem not in _TESTS:
            yield entry


def _is_package_name(name: str) -> bool:
    return name.isidentifier() and name not in _TESTS | _NOT_PACKAGES and name != "__pycache__"


def _documents_of_file(file: Path, root: Path) -> Iterator[Document | BadLine]:
    where = file.relative_to(root)
    try:
        tree = _parse(file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield BadLine(where.as_posix(), "cannot be parsed", str(error))
        return
    module = ".".join(where.with_suffix("").parts).removesuffix(".__init__")
    seen: set[str] = set()
    for document in _documents_of_module(tree, module):
        if document.id not in seen:
            seen.add(document.id)
            yield msgspec.structs.replace(document, where=where.as_posix())


def _parse(file: Path) -> ast.Module:
    if file.stat().st_size > FILE_BYTES_MAX:
        raise ValueError(f"it has more than {FILE_BYTES_MAX} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's escape sequences
        return ast.parse(file.read_bytes(), filename=file.name)


def _documents_of_module(tree: ast.Module, module: str) -> Iterator[Document]:
    body = _docstring(tree)
    if body:
        yield _document(module, module, "module", "", body)
    yield from _documents_in(tree.body, module, module, inside_class=False)


def _documents_in(
    statements: list[ast.stmt], prefix: str, module: str, *, inside_class: bool
) -> Iterator[Document]:
    for statement in statements:
        if isinstance(statement, _Definition):
            yield from _documents_of_definition(statement, prefix, module, inside_class)
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            for block in _blocks(statement):
                yield from _documents_in(block, prefix, module, inside_class=inside_class)


def _blocks(statement: ast.If | ast.Try | ast.With) -> Iterator[list[ast.stmt]]:
    """Yield the blocks whose definitions belong to the scope the statement stands in."""
    yield statement.body
    if isinstance(statement, ast.Try):
        yield from (handler.body for handler in statement.handlers)
        yield statement.finalbody
    if not isinstance(statement, ast.With):
        yield statement.orelse


def _documents_of_definition(
    node: _Definition,
    prefix: str,
    module: str,
    inside_class: bool,  # noqa: FBT001 - internal
) -> Iterator[Document]:
    path = f"{prefix}.{node.name}"
    is_class = isinstance(node, ast.ClassDef)
    body = _docstring(node)
    if body:
        kind = "class" if is_class else "method" if inside_class else "function"
        yield _document(path, module, kind, _signature(node), body)
    if is_class:
        yield from _documents_in(node.body, path, module, inside_class=True)


def _docstring(node: ast.Module | _Definition) -> str:
    """Return the docstring, indentation removed; half characters become question marks."""
    text = ast.get_docstring(node) or ""
    return text.encode("utf-8", "replace").decode()


def _document(path: str, module: str, kind: str, signature: str, body: str) -> Document:
    source: dict[str, Any] = {
        "name": path.rpartition(".")[2],
        "module": module,
        "kind": kind,
        "path": searchable_path(path),
        "signature": signature,
        "body": body,
        "lines": body.count("\n") + 1,
        "has_examples": PROMPT in body,
    }
    return Document(path, source)


def _signature(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{start}{node.name}({ast.unparse(node.args)}){returned}"


def searchable_path(path: str) -> str:
    """Return a qualified name as words, whole and split: "json JSONDecoder JSON Decoder".

    Underscores need no help, the analyser splits there.
    """
    words: list[str] = []
    for part in path.split("."):
        words.append(part)
        pieces = _WORD_STARTS.findall(part)
        if len(pieces) > part.count("_") + 1:
            words += pieces
    return " ".join(words)
