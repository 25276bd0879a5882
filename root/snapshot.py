"""What an operator sees at a glance: one value, for the page, for a terminal, for a script.

The last minute is ``root.live``'s; this adds what is the case now: the fleet, leaf by leaf, and
what hedging may still spend. Times in the result are milliseconds.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from root.channel import Channel
from root.discovery import Fleet
from root.search import Searches
from root.topology import View
from root.trouble import Trouble

LOST: Final = "lost"
ON_PROBATION: Final = "probation"
WELL: Final = "well"


def snapshot(
    searches: Searches, in_flight: int, now: float, trouble: Trouble | None = None
) -> dict[str, Any]:
    """Return the state of a root and its last minute. ``in_flight`` requests are in work."""
    fleet = searches.fleet
    in_use = {view.card.generation for view in fleet.in_use.values()}
    legs = searches.live.legs()
    return {
        "collections": collections(fleet),
        "in_flight": in_flight,
        "minute": searches.live.picture(),
        "hedging": _hedging(searches, now),
        "trouble": trouble.described() if trouble else None,
        "leaves": [
            _leaf(channel, in_use, legs.get(url, 0)) for url, channel in fleet.channels.items()
        ],
    }


def collections(fleet: Fleet) -> list[dict[str, Any]]:
    """Return each collection, the first being that of requests which name none."""
    return [_state(name, fleet.view(name)) for name in fleet.views]


def _state(name: str, view: View | None) -> dict[str, Any]:
    return {
        "collection": name,
        "generation": view.card.generation if view else None,
        "documents": view.documents if view else 0,
        "shards": len(view.replicas) if view else 0,
        "uncovered": view.uncovered if view else [],
    }


def topology(fleet: Fleet, collection: str | None) -> dict[str, Any]:
    """Return who holds what of a collection, and all leaves. Raises UnknownCollection."""
    collection = fleet.named(collection)
    view = fleet.view(collection)
    names = {channel.leaf: channel.name for channel in fleet.channels.values()}
    replicas = view.shard_replicas() if view else []
    documents = view.card.documents if view else ()
    return {
        "collection": collection,
        "collections": list(fleet.views),
        "generation": view.card.generation if view else None,
        "documents": sum(documents),
        "fields": list(view.card.fields) if view else [],
        "shards": [
            {
                "shard": shard,
                "documents": documents[shard],
                "leaves": [names[leaf] for leaf in leaves if leaf.connected],
            }
            for shard, leaves in replicas
        ],
        "generations": {
            name: {"documents": held.documents, "uncovered": held.uncovered}
            for name, held in fleet.views.get(collection, {}).items()
        },
        "leaves": [channel.described() for channel in fleet.channels.values()],
    }


def _hedging(searches: Searches, now: float) -> dict[str, Any]:
    budget = searches.budget
    resting = None
    if budget.pushed_back(now):
        resting = "push_back"
    elif budget.failing(now):
        resting = "errors"
    return {
        "policy": searches.settings.hedge,
        "max_extra_load": budget.terms.max_extra_load,
        "tokens": round(budget.level(now), 3),
        "burst": budget.burst,
        "resting": resting,
    }


def _leaf(channel: Channel, in_use: Container[str], legs: int) -> dict[str, Any]:
    """A leaf's state, and what a leg takes there: on probation, as its probes say.

    ``in_use`` are the generations that are searched; ``legs`` were answered in the last minute.
    """
    leaf = channel.leaf
    state, latency_s = WELL, leaf.latency_s
    if not leaf.connected:
        state = LOST
    elif leaf.trial is not None:
        state = ON_PROBATION
        latency_s = leaf.trial.latency_s or latency_s
    described = channel.described()
    return {
        "leaf": described["leaf"],
        "url": described["url"],
        "state": state,
        "latency_ms": None if state == LOST else round(latency_s * 1000.0, 3),
        "legs": legs,
        "in_flight": described["outstanding"],
        "shards": sum(len(held.shards) for held in channel.held if held.card.generation in in_use),
        "problem": described["problem"],
        "notice": described["notice"],
    }
