# SPDX-License-Identifier: Apache-2.0
"""Convert between Koordinator's milli-cores and bytes and YARN's vcores and MiB, and nowhere else.

Capacity that is offered to YARN is rounded down, use that is reported back is rounded up. With the same constants
both ways, a node that YARN uses completely never comes back as more than what was offered.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Final

from msgspec import Struct

from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources

BYTES_PER_MIB: Final = 1_048_576
"""YARN writes "MB" and means this."""

MAX_VCORES: Final = 2_147_483_647
"""ResourceProto.virtual_cores is an int32; an absurd origin must not break the message of all nodes."""

_RATIO_GRAMMAR: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,18})?")


class UnitModel(Struct, frozen=True):
    """Fix how many milli-cores of batch-cpu make one vcore.

    Raises:
        ValueError: fewer than one.
    """

    milli_cores_per_vcore: int

    def __post_init__(self) -> None:
        if self.milli_cores_per_vcore < 1:
            raise ValueError(f"milli_cores_per_vcore is {self.milli_cores_per_vcore}, the smallest is 1")

    def to_yarn(self, batch: BatchResources, *, normalization_ratio: Fraction | None = None) -> YarnResources:
        """Convert capacity, rounding down; negative amounts become zero.

        Args:
            batch: milli-cores and bytes.
            normalization_ratio: set where a vcore is meant to be physical: batch-cpu is divided by it first.

        Returns:
            Whole vcores (at most `MAX_VCORES`) and MiB.
        """
        milli_cores: Fraction | int = self.milli_cores_per_vcore
        if normalization_ratio is not None:
            milli_cores *= normalization_ratio
        vcores = max(batch.cpu_milli, 0) // milli_cores
        return YarnResources(memory_mib=max(batch.memory_bytes, 0) // BYTES_PER_MIB, vcores=min(vcores, MAX_VCORES))

    def to_batch(self, yarn: YarnResources, *, normalization_ratio: Fraction | None = None) -> BatchResources:
        """Convert use or capacity back, rounding up.

        Args:
            yarn: vcores and MiB.
            normalization_ratio: the same as for `to_yarn`.

        Returns:
            Milli-cores and bytes.
        """
        if not yarn.vcores and not yarn.memory_mib:
            return ZERO_BATCH
        cpu_milli = yarn.vcores * self.milli_cores_per_vcore
        if normalization_ratio is not None:
            cpu_milli = ceil(cpu_milli * normalization_ratio)
        return BatchResources(cpu_milli=cpu_milli, memory_bytes=yarn.memory_mib * BYTES_PER_MIB)


def parse_normalization_ratio(text: str | None) -> Fraction | None:
    """Read the annotation `node.koordinator.sh/cpu-normalization-ratio`.

    Koordinator writes two decimals and multiplies batch-cpu only by ratios above one, so anything else, malformed
    texts included, means that nothing was multiplied.

    Args:
        text: decimal text such as `1.20`; None when absent.

    Returns:
        The exact ratio, above one, or None.
    """
    if text is None or _RATIO_GRAMMAR.fullmatch(text.strip()) is None:
        return None
    ratio = Fraction(text.strip())
    return ratio if ratio > 1 else None
