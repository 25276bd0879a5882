"""A real fleet in trouble: it is slow where it is said to be, and everybody knows."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bench.fleet import Fleet, Shape, running

pytestmark = pytest.mark.live

TOKEN: Final = "0123456789abcdef"
SLOWED_S: Final = 0.010
"""Of the law of the slow replica's delays, a draw below this is one in ten million."""

HEARD_S: Final = 10.0
"""A root hears of a change in milliseconds; after this it never will."""


def asked(
    url: str, method: str = "GET", body: bytes | None = None, token: str = ""
) -> tuple[int, Any]:
    """Make one request; return status and JSON."""
    request = urllib.request.Request(url, body, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=HEARD_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def quickest_s(leaf_url: str) -> float:
    """The shortest of some searches of one shard."""
    took: list[float] = []
    for _ in range(10):
        began = time.monotonic()
        body = b'{"query": {"type": "all"}}'
        assert asked(f"{leaf_url}/shards/0/search", "POST", body)[0] == 200
        took.append(time.monotonic() - began)
    return min(took)


def notices(fleet: Fleet) -> list[str | None]:
    """What the root knows of its leaves."""
    return [leaf["notice"] for leaf in asked(f"{fleet.root_url}/topology")[1]["leaves"]]


@pytest.fixture(name="troubled")
def troubled_fixture(tmp_path: Path) -> Iterator[Fleet]:
    """Two replicas of everything, one of them slow."""
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n", encoding="utf-8")
    trouble = ("--interference", "one-slow-replica", "--seed", "3")
    options = (*trouble, "--admin-token-file", str(token))
    with running(Shape(canned=4, leaves=2, replicas=2, leaf_options=options)) as fleet:
        yield fleet


def test_one_replica_is_slow_and_everybody_knows(troubled: Fleet) -> None:
    """One leaf is slow and the other is not; root, leaf and their logs say why; whoever has the
    token ends it, and then it is over.
    """
    slow, sound = troubled.leaf_urls
    assert quickest_s(slow) > SLOWED_S
    assert quickest_s(sound) < quickest_s(slow)
    for notice in notices(troubled):
        assert notice is not None
        assert "INTERFERENCE one-slow-replica, seed 3: " in notice
    assert "INTERFERENCE" in asked(f"{slow}/healthz")[1]["notice"]
    for name in ("root", "leaf0", "leaf1"):
        assert "WARNING" in troubled.log(name)
        assert "INTERFERENCE one-slow-replica" in troubled.log(name)
    status, answer = asked(f"{troubled.root_url}/search?q=x")
    assert (status, answer["coverage"]["complete"]) == (200, True)

    assert asked(f"{slow}/interference", "DELETE")[0] == 401
    assert asked(f"{slow}/interference", "DELETE", token="f" * 16)[0] == 403
    assert asked(f"{slow}/interference", "DELETE", token=TOKEN)[0] == 200
    until_s = time.monotonic() + HEARD_S
    while any("INTERFERENCE" in (notice or "") for notice in notices(troubled)[:1]):
        assert time.monotonic() < until_s, "the root was not told"
        time.sleep(0.01)
    assert quickest_s(slow) < SLOWED_S
