"""Simulated leaves that meet the trouble of an interference plan, as real ones do.

What a leg meets is drawn by the product's own code from plan, seed, leaf, query and shard, so
it is what a real leaf with that ordinal draws for the same query.
"""

from __future__ import annotations

from bench.simulation.scripted import Deed, Leg, Script
from bench.simulation.scripted_fleet import ScriptedFleet
from bench.virtual_time import running_loop
from leaf.interference import Arrival, Busy, Interference, Plan, Transit


def inject(fleet: ScriptedFleet, plan: Plan, seed: int) -> None:
    """Put a plan in force on every leaf of a fleet, from now on.

    Raises ValueError where it has rules for which simulated leaves have no script.
    """
    for ordinal, leaf in enumerate(fleet.leaves):
        leaf.script = injected(plan, ordinal, seed)


def injected(plan: Plan, ordinal: int, seed: int) -> Script:
    """The script of the leaf with this ordinal; raises ValueError as ``inject`` does."""
    if unknown := [rule for rule in plan.rules if not isinstance(rule, Busy | Transit)]:
        raise ValueError(f"simulated leaves know no rule {type(unknown[0]).__name__.lower()!r}")
    loop = running_loop()
    interference = Interference(plan, leaf=ordinal, seed=seed, began_s=loop.time())

    def script(leg: Leg) -> Deed:
        arrival = Arrival("search", (leg.shard,), query=leg.flight.ask.query)
        (trouble,) = interference.meet(arrival, loop.time())
        return Deed(trouble.busy_s, transit_s=trouble.transit_s)

    return script


def draws_s(plan: Plan, seed: int, count: int) -> list[float]:
    """What so many legs of one leaf are to take in all, in seconds, when nothing has to wait."""
    interference = Interference(plan, leaf=0, seed=seed, began_s=0.0)
    met = (interference.meet(Arrival("search", (0,), query=n), 0.0)[0] for n in range(count))
    return [trouble.busy_s + trouble.transit_s for trouble in met]
