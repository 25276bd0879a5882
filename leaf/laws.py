"""How long trouble lasts: the distributions that a rule can draw from.

Written in milliseconds, as people think of them; drawn in seconds, as everything else here
is. Pure: the generator is handed in.
"""

from __future__ import annotations

import math
from random import Random
from typing import Annotated, Final

import msgspec

LONGEST_S: Final = 600.0
"""No query waits as long. A draw is cut here, for a heavy tail has no largest value."""

Milliseconds = Annotated[float, msgspec.Meta(ge=0.0, le=LONGEST_S * 1e3)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=LONGEST_S * 1e3)]
Sigma = Annotated[float, msgspec.Meta(ge=0.0, le=10.0)]
"""At 10, one draw in forty is already a hundred million times the median."""

Alpha = Annotated[float, msgspec.Meta(ge=0.1, le=1000.0)]
Draws = Annotated[int, msgspec.Meta(ge=1, le=100)]


class Constant(
    msgspec.Struct, frozen=True, tag="constant", tag_field="law", forbid_unknown_fields=True
):
    """Always the same."""

    ms: Milliseconds

    def draw_s(self, random: Random) -> float:  # noqa: ARG002 - nothing is left to chance
        """Return the duration in seconds."""
        return self.ms / 1e3


class Uniform(
    msgspec.Struct, frozen=True, tag="uniform", tag_field="law", forbid_unknown_fields=True
):
    """Anything from ``from_ms`` to ``to_ms``, in steps of ``step_ms`` from the first on if that
    is not 0; the largest of ``largest_of`` such draws.
    """

    from_ms: Milliseconds
    to_ms: Milliseconds
    step_ms: Milliseconds = 0.0
    largest_of: Draws = 1

    def __post_init__(self) -> None:
        """Raise ValueError for an end before the beginning."""
        if self.to_ms < self.from_ms:
            message = f"to_ms must be at least from_ms, {self.from_ms:g}, not {self.to_ms:g}"
            raise ValueError(message)

    def draw_s(self, random: Random) -> float:
        """Return a duration in seconds."""
        return max([self._one_ms(random) for _ in range(self.largest_of)]) / 1e3

    def _one_ms(self, random: Random) -> float:
        if not self.step_ms:
            return random.uniform(self.from_ms, self.to_ms)
        steps = int((self.to_ms - self.from_ms) / self.step_ms)
        return self.from_ms + self.step_ms * random.randrange(steps + 1)


class LogNormal(
    msgspec.Struct, frozen=True, tag="log-normal", tag_field="law", forbid_unknown_fields=True
):
    """Its logarithm is normal with standard deviation ``sigma``: the law of work, mostly short
    and sometimes many times as long.
    """

    median_ms: Positive
    sigma: Sigma

    def draw_s(self, random: Random) -> float:
        """Return a duration in seconds: by Box and Muller, which keeps nothing for the next."""
        radius = math.sqrt(-2.0 * math.log(1.0 - random.random()))
        normal = radius * math.cos(math.tau * random.random())
        return self.median_ms / 1e3 * math.exp(self.sigma * normal)


class Pareto(
    msgspec.Struct, frozen=True, tag="pareto", tag_field="law", forbid_unknown_fields=True
):
    """At least ``least_ms``, and longer than x with probability (least_ms / x) ** alpha: the
    law of stalls. Without a mean when alpha is 1 or less.
    """

    least_ms: Positive
    alpha: Alpha

    def draw_s(self, random: Random) -> float:
        """Return a duration in seconds."""
        return float(self.least_ms / 1e3 * (1.0 - random.random()) ** (-1.0 / self.alpha))


Law = Constant | Uniform | LogNormal | Pareto
