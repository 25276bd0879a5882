"""``hedgerow-keep I``: run leaf I, and run it again when it dies.

A process runner such as honcho ends everything when one process ends. A fleet that is
meant to survive the death of a leaf needs somebody between the two. The keeper

* starts its leaf again when it dies by a signal or crashes, after a pause that grows while
  it keeps dying young;
* passes on exit code 2 (bad input: trying again would not help) and ends;
* ends its leaf when it is ended, and never leaves one behind: even a keeper killed with
  SIGKILL takes its leaf along, where the system can do that (Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import click

from leaf.errors import BadSetting

EXIT_BAD_INPUT: Final = 2

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 30.0
"""The pause before a restart doubles from the first to the second while deaths are early."""

SETTLED_S: Final = 10.0
"""A leaf that lived this long did not die of its start."""

END_S: Final = 1.8
"""How long a leaf may take to end before it is killed; a leaf promises less."""

LOOK_S: Final = 0.05
"""How often the keeper looks whether its leaf is alive: the resolution of its pauses."""

PR_SET_PDEATHSIG: Final = 1
"""From <sys/prctl.h>: the signal a process gets when its parent dies."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says of the fleet. Raises BadSetting."""

    indexes: tuple[str, ...]
    leaves: int
    replicas: int
    base_port: int

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings from environment variables."""
        return cls(
            indexes=tuple((environment.get("HEDGEROW_INDEX") or "index_data/shards").split(",")),
            leaves=_number(environment, "HEDGEROW_LEAVES", 4),
            replicas=_number(environment, "HEDGEROW_REPLICAS", 2),
            base_port=_number(environment, "HEDGEROW_LEAF_PORT", 8081),
        )

    def command(self, ordinal: int) -> list[str]:
        """Return the command line of one leaf; the leaf itself checks the values."""
        return [
            *(sys.executable, "-m", "leaf"),
            *(part for index in self.indexes for part in ("--index", index)),
            *("--ordinal", str(ordinal), "--of", str(self.leaves)),
            *("--replicas", str(self.replicas), "--port", str(self.base_port + ordinal)),
        ]


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{name} must be a whole number, not {text[:50]!r}") from None


class Pauses:
    """How long to wait before the next start: grows while the leaf keeps dying young."""

    def __init__(self) -> None:
        self._next_s = PAUSE_S

    def after(self, lived_s: float) -> float:
        """Return the pause after a leaf that lived this long."""
        if lived_s >= SETTLED_S:
            self._next_s = PAUSE_S
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, PAUSE_S_MAX)
        return pause_s


def fate(returncode: int) -> str:
    """Return in words how a process ended."""
    if returncode >= 0:
        return f"ended with code {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"


class Keeper:
    """Keeps one leaf running until told to end."""

    def __init__(self, ordinal: int, command: list[str]) -> None:
        self._ordinal = ordinal
        self._command = command
        self._told_to_end = False
        self._parent = os.getppid()
        self._pauses = Pauses()

    def run(self) -> int:
        """Run until a signal or bad input; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.end())
        while not self._ending:
            began_s = time.monotonic()
            returncode = self._run_once()
            if returncode == EXIT_BAD_INPUT:
                return EXIT_BAD_INPUT
            if not self._ending:
                self._pause(returncode, time.monotonic() - began_s)
        return 0

    def end(self) -> None:
        """End the leaf, and then the keeper, soon."""
        self._told_to_end = True

    @property
    def _ending(self) -> bool:
        """Told to, or left alone: a closed terminal takes honcho without telling anyone else."""
        return self._told_to_end or os.getppid() != self._parent

    def _run_once(self) -> int:
        keeper = os.getpid()
        leaf = subprocess.Popen(self._command, preexec_fn=lambda: die_with(keeper))  # noqa: PLW1509 - one thread
        try:
            while not self._ending:
                try:
                    return leaf.wait(LOOK_S)
                except subprocess.TimeoutExpired:
                    continue
            leaf.terminate()
            return leaf.wait(END_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            if leaf.poll() is None:
                leaf.kill()
                leaf.wait()

    def _pause(self, returncode: int, lived_s: float) -> None:
        pause_s = self._pauses.after(lived_s)
        say(f"leaf {self._ordinal} {fate(returncode)}; it is started again in {pause_s:g} s")
        end_s = time.monotonic() + pause_s
        while not self._ending and time.monotonic() < end_s:
            time.sleep(LOOK_S)


def die_with(parent: int) -> None:
    """Have the system kill this process when its parent dies. Runs between fork and exec."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It died before the system knew that it matters.
        os._exit(1)


def say(words: str) -> None:
    """Tell the operator."""
    click.echo(f"keeper: {words}", err=True)


@click.command()
@click.argument("ordinal", type=click.IntRange(min=0))
def main(ordinal: int) -> None:
    """Run leaf ORDINAL of the fleet, and run it again when it dies.

    The fleet is described by HEDGEROW_INDEX, HEDGEROW_LEAVES, HEDGEROW_REPLICAS and
    HEDGEROW_LEAF_PORT (the port of leaf 0).
    """
    try:
        settings = Settings.read(os.environ)
    except BadSetting as error:
        say(str(error))
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(Keeper(ordinal, settings.command(ordinal)).run())


if __name__ == "__main__":
    main()
