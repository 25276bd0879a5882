"""A root and its leaves as real processes on this machine, for benchmarks and live tests.

    with running(Shape(index=folder)) as fleet:
        ... fleet.root_url ...; fleet.kill(0); fleet.stop(2); fleet.resume(2); fleet.start(0)

Every wait is bounded, and at the end every process started here is gone, by its own pid.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

READY_S_MAX: Final = 30.0
"""A fleet that is not ready by then will not be: an index of this size opens in a second."""

END_S_MAX: Final = 3.0
"""A process gets this long to end by itself, the time that is promised after Ctrl-C."""

NICE: Final = 5
"""How far what is measured stands back behind the generator."""

AUTOGROUP: Final = Path("/proc/self/autogroup")

PR_SET_PDEATHSIG: Final = 1
"""From <sys/prctl.h>: the signal a process gets when the thread that started it ends."""

POLL_S: Final = 0.05
LOG_BYTES_SHOWN: Final = 2000

PORTS: Final = range(20_000, 30_000)
"""Below the range from which systems take ports of outgoing connections."""


class FleetError(RuntimeError):
    """The fleet did not start, or did not come to the state that was waited for."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What to start: ``leaf_options`` and ``root_options`` are added to the command lines.

    Without an ``index`` the leaves serve ``canned`` shards, which answer without searching.
    ``root`` is False where the benchmark is itself the root.
    """

    index: Path | None = None
    canned: int = 0
    root: bool = True
    leaves: int = 4
    replicas: int = 2
    own_index: bool = False
    """Whether each leaf has a copy of the index of its own, so that one can be cold alone."""
    leaf_options: tuple[str, ...] = ()
    root_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= self.leaves:
            raise ValueError(f"replicas must be 1 to {self.leaves}: {self.replicas}")
        if (self.index is None) == (self.canned < 1):
            raise ValueError("give either an index or a number of canned shards")

    def source_options(self, index: Path | None) -> tuple[str, str]:
        """What a leaf serves, as options of its command: the index in that folder, if any."""
        return ("--index", str(index)) if index else ("--canned", str(self.canned))


class Fleet:
    """The running processes; made by ``running``. Leaves go by ordinal."""

    def __init__(self, shape: Shape, logs: Path) -> None:
        ports = free_ports(shape.leaves + 1)
        self._shape = shape
        self._logs = logs
        self._root_port = ports[0]
        self._leaf_ports = ports[1:]
        self._leaves: dict[int, subprocess.Popen[bytes]] = {}
        self._root: subprocess.Popen[bytes] | None = None
        self._more: list[subprocess.Popen[bytes]] = []

    @property
    def root_url(self) -> str:
        """Where the root answers."""
        return f"http://127.0.0.1:{self._root_port}"

    @property
    def leaf_urls(self) -> tuple[str, ...]:
        """Where the leaves answer, by ordinal."""
        return tuple(f"http://127.0.0.1:{port}" for port in self._leaf_ports)

    def start_all(self) -> None:
        """Start every leaf and the root, and wait until every shard is served."""
        for ordinal in range(self._shape.leaves):
            self.start(ordinal)
        if not self._shape.root:
            for ordinal in range(self._shape.leaves):
                self.wait_leaf(ordinal)
            return
        leaves = [option for url in self.leaf_urls for option in ("--leaf", url)]
        command = ["root", "--port", str(self._root_port), *leaves, *self._shape.root_options]
        self._root = self._spawn("root", command)
        everyone = (self._root, *self._leaves.values())
        self._wait_ready(f"{self.root_url}/readyz", *everyone)
        self._wait(lambda: all_connected(self.root_url), "some leaf is not connected", *everyone)

    def start(self, ordinal: int) -> None:
        """Start a leaf (again)."""
        shape, port = self._shape, self._leaf_ports[ordinal]
        source = shape.source_options(self.index_of(ordinal))
        command = ["leaf", *source, "--ordinal", str(ordinal)]
        command += ["--of", str(shape.leaves), "--replicas", str(shape.replicas)]
        command += ["--port", str(port), *shape.leaf_options]
        self._leaves[ordinal] = self._spawn(f"leaf{ordinal}", command)

    def start_root(self, *options: str) -> str:
        """Start one more root over the same leaves; return its URL once it serves."""
        (port,) = free_ports(1)
        leaves = [option for url in self.leaf_urls for option in ("--leaf", url)]
        root = self._spawn(f"root{port}", ["root", "--port", str(port), *leaves, *options])
        self._more.append(root)
        url = f"http://127.0.0.1:{port}"
        self._wait_ready(f"{url}/readyz", root)
        self._wait(lambda: all_connected(url), "some leaf is not connected", root)
        return url

    def beside(self, code: str) -> subprocess.Popen[bytes]:
        """Run a few lines of Python in a process that ends with the fleet, or before."""
        with (self._logs / "beside").open("ab") as log:
            process = _spawn([sys.executable, "-S", "-c", code], log)
        self._more.append(process)
        return process

    @property
    def indexes(self) -> Path:
        """Where leaves have copies of the index, if they have."""
        return self._logs.with_name(f"{self._logs.name}-indexes")

    def pid(self, ordinal: int) -> int:
        """The process of a leaf."""
        return self._leaves[ordinal].pid

    def index_of(self, ordinal: int) -> Path | None:
        """The index that a leaf serves, if it does not serve canned shards: copied at first."""
        index = self._shape.index
        if index is None or not self._shape.own_index:
            return index
        own = self.indexes / str(ordinal)
        if not own.exists():
            shutil.copytree(index, own)
        return own

    def wait_leaf(self, ordinal: int) -> None:
        """Wait until a leaf has loaded its shards."""
        url = f"{self.leaf_urls[ordinal]}/readyz"
        self._wait_ready(url, self._leaves[ordinal])

    def kill(self, ordinal: int) -> None:
        """End a leaf at once, as a crash would."""
        self._leaves[ordinal].kill()
        self._leaves[ordinal].wait(END_S_MAX)

    def kill_root(self) -> None:
        """End the root at once, as a crash would."""
        assert self._root is not None  # noqa: S101 - there is one unless the shape has none
        self._root.kill()
        self._root.wait(END_S_MAX)

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by the names that `log` takes."""
        processes = {f"leaf{number}": process for number, process in self._leaves.items()}
        if self._root is not None:
            processes["root"] = self._root
        return {name: process.pid for name, process in processes.items()}

    def stop(self, ordinal: int) -> None:
        """Freeze a leaf: its connections stay open, and nothing answers."""
        self._leaves[ordinal].send_signal(signal.SIGSTOP)

    def resume(self, ordinal: int) -> None:
        """Let a frozen leaf go on."""
        self._leaves[ordinal].send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End every process that still runs: asked first, then forced."""
        started = (self._root, *self._more, *self._leaves.values())
        processes = [process for process in started if process is not None]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline_s = time.monotonic() + END_S_MAX
        for process in processes:
            try:
                process.wait(max(0.0, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_S_MAX)

    def log(self, name: str) -> str:
        """The end of what ``root`` or ``leaf0`` ... has printed."""
        return _tail(self._logs / name)

    def _said(self) -> str:
        names = sorted(path.name for path in self._logs.iterdir())
        return "\n".join(f"--- {name}\n{self.log(name)}" for name in names)

    def _spawn(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._logs / name).open("ab") as log:
            return _spawn([sys.executable, "-m", *command], log)

    def _wait_ready(self, url: str, *needed: subprocess.Popen[bytes]) -> None:
        """Wait for a 200; FleetError as soon as a process that is needed for it has ended."""
        self._wait(lambda: answers(url), f"{url} is not ready", *needed)

    def _wait(
        self, done: Callable[[], bool], lacking: str, *needed: subprocess.Popen[bytes]
    ) -> None:
        deadline_s = time.monotonic() + READY_S_MAX
        while not done():
            if any(process.poll() is not None for process in needed):
                raise FleetError(f"a process has ended; what was said:\n{self._said()}")
            if time.monotonic() > deadline_s:
                raise FleetError(f"{lacking}; what was said:\n{self._said()}")
            time.sleep(POLL_S)


@contextlib.contextmanager
def running(shape: Shape) -> Iterator[Fleet]:
    """A fleet, ready to be asked; gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-fleet-") as logs:
        fleet = Fleet(shape, Path(logs))
        try:
            fleet.start_all()
            yield fleet
        finally:
            fleet.end()
            shutil.rmtree(fleet.indexes, ignore_errors=True)


def answers(url: str) -> bool:
    """Whether a GET gives 200 within a second."""
    try:
        with urllib.request.urlopen(url, timeout=1) as response:  # noqa: S310 - our own address
            return bool(response.status == http.client.OK)
    except (OSError, http.client.HTTPException):
        return False


def all_connected(root_url: str) -> bool:
    """Whether the root is connected to every leaf that it was told of."""
    try:
        with urllib.request.urlopen(f"{root_url}/topology", timeout=1) as response:  # noqa: S310 - our own address
            return all(leaf["connected"] for leaf in json.load(response)["leaves"])
    except (OSError, http.client.HTTPException):
        return False


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface on which nothing listens now."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise FleetError(f"there are no {count} free ports between {PORTS.start} and {PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _spawn(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start in a session of its own: Ctrl-C reaches the benchmark, which ends what it started.

    Where the system can (Linux), a benchmark that is killed takes its processes along.
    """
    parent = os.getpid()
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=lambda: _behave(parent),  # noqa: PLW1509 - between fork and exec it only makes system calls
    )


def _behave(parent: int) -> None:
    _give_way()
    _die_with(parent)


def _give_way() -> None:
    """Let the generator go first where there are fewer cores than processes: a request that is
    sent late is measured as a slow answer. Linux weighs sessions before processes, so the
    session's weight has to say it too.
    """
    os.nice(NICE)
    with contextlib.suppress(OSError), AUTOGROUP.open("wb") as group:
        group.write(b"%d" % NICE)


def _die_with(parent: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it died before the system knew that it matters


def _tail(path: Path) -> str:
    text = path.read_bytes() if path.exists() else b""
    return text[-LOG_BYTES_SHOWN:].decode(errors="replace")
