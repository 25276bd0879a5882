"""What ``honcho start`` and ``make run`` start, and that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from bench.fleet import POLL_S, answers, free_ports

pytestmark = pytest.mark.live

REPOSITORY: Final = Path(__file__).parent.parent.parent
BIN: Final = Path(sys.executable).parent
READY_S_MAX: Final = 30.0
MAKE_VARIABLES: Final = frozenset({"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"})
END_S_MAX: Final = 3.0
"""What is promised after Ctrl-C."""


def clean_environment() -> dict[str, str]:
    """This environment without what a make that runs these tests tells the makes below it."""
    return {name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES}


def environment(index: Path) -> dict[str, str]:
    """The settings of a fleet on free ports, found again by its index in /proc."""
    root, *_ = free_ports(1)
    return {
        **clean_environment(),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HEDGEROW_INDEX": str(index),
        "HEDGEROW_PORT": str(root),
        "HEDGEROW_LEAF_PORT": str(four_ports_in_a_row()),
    }


def four_ports_in_a_row() -> int:
    """The first of four free ports."""
    for first in free_ports(50):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + 4):
                taken = stack.enter_context(socket.socket())
                taken.bind(("127.0.0.1", port))
            return first
    raise AssertionError("no four free ports in a row")


def processes_with(text: str) -> dict[int, str]:
    """Command lines by pid of the processes that have ``text`` in their environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes()
                found[int(folder.name)] = command.replace(b"\0", b" ").decode()
    return found


def wait_until(condition: Callable[[], object], within_s: float) -> bool:
    """Whether the condition came true in time."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(POLL_S)
    return True


@contextlib.contextmanager
def honcho(env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The Procfile, run as a person would; whatever it left behind is ended."""
    command = [str(BIN / "honcho"), "start"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=env, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pid in processes_with(f"HEDGEROW_INDEX={env['HEDGEROW_INDEX']}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def own_index(index: Path, tmp_path: Path) -> Path:
    """The index by a name of this test's own, which marks the processes it starts."""
    link = tmp_path / "index"
    link.symlink_to(index)
    return link


def test_ctrl_c_leaves_nothing_behind(own_index: Path, tmp_path: Path) -> None:
    """The fleet says where it is and what to ask; after SIGINT all of it is gone in 3 s, and none
    of it complains that the others are.
    """
    env = environment(own_index)
    url = f"http://127.0.0.1:{env['HEDGEROW_PORT']}"
    with honcho(env, tmp_path / "log") as process:
        log = (tmp_path / "log").read_text
        assert wait_until(lambda: answers(f"{url}/readyz"), READY_S_MAX), log()
        assert wait_until(lambda: f"{url}/search?q=" in log(), 2), log()
        assert len(processes_with(str(own_index))) >= 10
        start_s, said = time.monotonic(), len(log())
        os.killpg(process.pid, signal.SIGINT)
        process.wait(END_S_MAX)
        assert wait_until(lambda: not processes_with(str(own_index)), END_S_MAX)
        assert time.monotonic() - start_s < END_S_MAX, log()
        lines = log()[said:].splitlines()
        # What was about to be logged at the start may come late; nobody complains.
        assert [line for line in lines if re.search("WARNING|ERROR|Traceback", line)] == []
        assert sum("stopped (rc=0)" in line for line in lines) == 5


def test_a_killed_leaf_comes_back(own_index: Path, tmp_path: Path) -> None:
    """Killing a leaf by what stands in its command line ends nothing else; it is restarted."""
    env = environment(own_index)
    url = f"http://127.0.0.1:{env['HEDGEROW_PORT']}"
    with honcho(env, tmp_path / "log") as process:
        assert wait_until(lambda: answers(f"{url}/readyz"), READY_S_MAX)
        leaves = {
            pid
            for pid, command in processes_with(str(own_index)).items()
            if re.search(r"leaf --index .* --ordinal 1", command)
        }
        assert len(leaves) == 1
        # Asked before, its structure is known; an unknown one is tried on a single leaf first, and
        # if that dies just then, the query is the one to blame.
        assert answers(f"{url}/search?q=anything")
        os.kill(leaves.pop(), signal.SIGKILL)
        leaf_url = f"http://127.0.0.1:{int(env['HEDGEROW_LEAF_PORT']) + 1}/readyz"
        assert wait_until(lambda: not answers(leaf_url), 5)
        assert answers(f"{url}/search?q=anything")
        assert wait_until(lambda: answers(leaf_url), READY_S_MAX)
        assert process.poll() is None


def test_a_missing_index_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    """Honcho passes the exit code on, and the sentence is there to be read."""
    (tmp_path / "empty").mkdir()
    with honcho(environment(tmp_path / "empty"), tmp_path / "log") as process:
        assert process.wait(READY_S_MAX) == 2
    assert "There is no index in" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("variable", ["HEDGEROW_PORT", "HEDGEROW_LEAF_PORT"])
def test_a_port_in_use_is_one_sentence_and_exit_code_2(
    variable: str, own_index: Path, tmp_path: Path
) -> None:
    """Whoever's port is taken says so, and everything ends."""
    env = environment(own_index)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(env[variable])))
        taken.listen()
        with honcho(env, tmp_path / "log") as process:
            assert process.wait(READY_S_MAX) == 2
    text = (tmp_path / "log").read_text()
    assert re.search(rf"port {env[variable]}\b.* in use", text, re.IGNORECASE), text


def make(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run make, and return what it said."""
    return subprocess.run(
        ["make", "run", *arguments],
        cwd=REPOSITORY,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ('case "$2" in *version_info*) exit 1;; esac', "is older"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "has no venv module"),
    ],
)
def test_an_unfit_python_is_one_sentence(script: str, sentence: str, tmp_path: Path) -> None:
    """Too old a Python, or one without venv, is said before anything is made."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    done = make(f"PYTHON={python}", f"VENV={tmp_path / 'venv'}", env=clean_environment())
    assert done.returncode == 2
    assert sentence in done.stderr


def test_no_python_is_one_sentence(tmp_path: Path) -> None:
    """A Python that is not there is said, too."""
    done = make("PYTHON=no-such-python", f"VENV={tmp_path / 'venv'}", env=clean_environment())
    assert done.returncode == 2
    assert "there is no no-such-python" in done.stderr


@pytest.fixture
def made_venv() -> Path:
    """This environment, where make made it and finds nothing to do; else there is no test."""
    ready = Path(sys.prefix) / ".ready"
    if not ready.exists():
        pytest.skip("this environment was not made by make")
    return Path(sys.prefix)


def test_make_run_asks_for_the_ports_first(own_index: Path, made_venv: Path) -> None:
    """A port in use is one sentence before anything is started."""
    env = environment(own_index)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(env["HEDGEROW_LEAF_PORT"]) + 3))
        taken.listen()
        done = make(f"VENV={made_venv}", env=env)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1
    assert "cannot be used" in said[0]


def test_make_run_does_not_build_over_a_damaged_index(made_venv: Path, tmp_path: Path) -> None:
    """A generation without a manifest is said, not replaced."""
    (tmp_path / "20260101-000000-abcd").mkdir()
    done = make(f"VENV={made_venv}", env=environment(tmp_path))
    assert done.returncode == 2
    assert "half built" in done.stderr
