# SPDX-License-Identifier: Apache-2.0
"""Round as koord-manager does, where its results depend on binary floating point.

koord-manager multiplies a quantity by a percentage as float64 and cuts the product off to an integer. An exact
product can differ from that by one unit (0.35 has no exact binary form), so the float is repeated here on purpose:
the published origin has to be the same to the last unit. The float never leaves this module.
Source: Koordinator 1.8, pkg/util/resource.go and plugins/util/util.go.
"""

from __future__ import annotations

import math
from fractions import Fraction

from batch_resources.resources import BatchResources

_MILLI = 1000


def percent_of(amount: int, percent: int) -> int:
    """Take a percentage of an amount, cut off towards zero.

    Args:
        amount: Any integer unit.
        percent: May be negative (a reclaim threshold above 100 makes a negative margin) or above 100.

    Returns:
        The product as float64 arithmetic gives it, truncated.
    """
    return int(float(amount) * (float(percent) / 100.0))


def scaled_by_ratio(cpu_milli: int, ratio: Fraction) -> int:
    """Multiply batch-cpu by the CPU normalization ratio: truncated at a thousandth of a unit, then rounded up.

    The quantity batch-cpu counts milli-cores as whole units, and the product is cut off at the thousandth of such a
    unit; a broken unit left over is rounded up before it is written.
    """
    thousandths = int(float(cpu_milli * _MILLI) * float(ratio))
    return -(-thousandths // _MILLI)


def divide_ceil(amount: BatchResources, divisor: int) -> BatchResources:
    """Divide both resources by a count and round up; a count of zero leaves the amount as it is.

    CPU is rounded up to whole milli-cores, memory to thousandths of a byte and then to whole bytes.
    """
    if divisor == 0:
        return amount
    return BatchResources(
        cpu_milli=math.ceil(float(amount.cpu_milli) / float(divisor)),
        memory_bytes=-(-math.ceil(float(amount.memory_bytes * _MILLI) / float(divisor)) // _MILLI),
    )


def differs_by(old: int, new: int, threshold: float) -> bool:
    """Tell whether a value moved by more than a ratio of its old value; exactly the ratio is not more."""
    old_milli, new_milli = float(old * _MILLI), float(new * _MILLI)
    return new_milli > old_milli * (1 + threshold) or new_milli < old_milli * (1 - threshold)
