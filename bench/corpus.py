"""The index an experiment runs on: a given one, or one built for it and removed after."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.fleet import FleetError
from index_data.manifest import Manifest, latest_generation, read_manifest

BUILD_S_MAX: Final = 300
"""Building the documentation of a large environment takes a tenth of this."""


@contextlib.contextmanager
def prepared(index: Path | None, source: str = "pydocs", shards: int = 16) -> Iterator[Path]:
    """An index directory: ``index`` itself, or a fresh build of ``source``."""
    if index is not None:
        latest_generation(index)
        yield index
        return
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        build(Path(folder), source, shards)
        yield Path(folder)


def build(out: Path, source: str, shards: int, *options: str) -> None:
    """Run the build as a person would; its complaint is in the error if it fails."""
    command = [sys.executable, "-m", "index_data", "build", "--source", source]
    command += ["--out", str(out), "--shards", str(shards), "--no-progress", *options]
    done = subprocess.run(command, capture_output=True, timeout=BUILD_S_MAX, check=False)
    if done.returncode:
        raise FleetError(f"the index could not be built: {done.stderr.decode(errors='replace')}")


def manifest_of(index: Path) -> Manifest:
    """The manifest of the newest generation of an index directory."""
    return read_manifest(latest_generation(index))


def query_fields(manifest: Manifest) -> tuple[str, str]:
    """The two text fields that queries name: the heaviest, and the one with most text."""
    texts = [field for field in manifest.fields if field.type == "text"]
    heaviest = max(texts, key=lambda field: field.weight)
    others = [field for field in texts if field is not heaviest] or texts
    most = max(others, key=lambda field: sum(shard.tokens[field.name] for shard in manifest.shards))
    return heaviest.name, most.name
