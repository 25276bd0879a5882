"""A process that does nothing but look how late it is woken: what the machine adds to anything.

Beside the lag of a busy process this says how much of it is the machine's: other people's
processes, and a hypervisor that gives the processors to somebody else for a while.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

BEAT_S: Final = 0.005
END_S_MAX: Final = 3.0


@contextlib.contextmanager
def watched() -> Iterator[list[float]]:
    """Watch the machine while the block runs; the list then holds the latenesses in seconds."""
    lags_s: list[float] = []
    command = [sys.executable, "-m", "bench.idle"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield lags_s
        said, _ = process.communicate(timeout=END_S_MAX)
        lags_s += json.loads(said)


def main() -> None:
    """Beat until standard input ends; print the latenesses in seconds as JSON."""
    lags_s: list[float] = []
    while True:
        due_s = time.monotonic() + BEAT_S
        if select.select([sys.stdin], [], [], BEAT_S)[0]:
            break
        lags_s.append(max(0.0, time.monotonic() - due_s))
    print(json.dumps(lags_s))


if __name__ == "__main__":
    main()
