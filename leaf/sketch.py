"""How many different values there are, from parts that may overlap.

Up to ``DISTINCT_EXACT_MAX`` values are kept as hashes of 64 bits: two of so many are equal
once in a thousand million million tries. More become a HyperLogLog (Flajolet et al. 2007; with
64 bits, as in Heule et al. 2013, no correction for large counts is needed) of 2**14 registers,
whose standard error is 1.04 / sqrt(2**14) = 0.81 %. Between the two there is no seam: what
parts merge to follows from the values alone, in any order and batching.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

PRECISION: Final = 14
REGISTERS: Final = 1 << PRECISION
STANDARD_ERROR: Final = 1.04 / math.sqrt(REGISTERS)

_BITS: Final = 64 - PRECISION
_ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTERS)
_LINEAR_UNTIL: Final = 2.5 * REGISTERS
"""Below this, empty registers tell more than full ones."""


def hashed(value: str | float | bool) -> int:  # noqa: FBT001 - booleans are values
    """Return 64 bits that are a value's own: equal values of one type have equal ones."""
    return int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "big")


def sketch(hashes: Iterable[int]) -> bytes:
    """Return the registers of some hashes."""
    registers = bytearray(REGISTERS)
    for value in hashes:
        place, rest = value >> _BITS, value & ((1 << _BITS) - 1)
        rank = _BITS - rest.bit_length() + 1
        registers[place] = max(registers[place], rank)
    return bytes(registers)


def merged(left: bytes, right: bytes) -> bytes:
    """Return the registers of the values of both."""
    return bytes(map(max, left, right))


def estimate(registers: bytes) -> int:
    """Return about how many different hashes made the registers."""
    raw = _ALPHA * REGISTERS**2 / math.fsum(2.0**-rank for rank in registers)
    empty = registers.count(0)
    if raw <= _LINEAR_UNTIL and empty:
        raw = REGISTERS * math.log(REGISTERS / empty)
    return round(raw)
