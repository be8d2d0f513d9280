# SPDX-License-Identifier: Apache-2.0
"""Define the two resource vectors of the ledger, in the units of their owners.

`BatchResources` counts as Koordinator does (milli-cores and bytes), `YarnResources` as YARN does (whole vcores
and MiB; YARN writes "MB" and means MiB). Converting between them is the business of `batch_resources.units`
alone. All numbers are integers: a float never enters the ledger. A result that equals an operand is that operand, since
most sums and limits of a node at rest change nothing.
"""

from __future__ import annotations

from msgspec import Struct


class BatchResources(Struct, frozen=True, kw_only=True, gc=False):
    """Hold an amount of `kubernetes.io/batch-cpu` (milli-cores) and `kubernetes.io/batch-memory` (bytes)."""

    cpu_milli: int
    memory_bytes: int

    def __add__(self, other: BatchResources) -> BatchResources:
        if not other.cpu_milli and not other.memory_bytes:
            return self
        return BatchResources(
            cpu_milli=self.cpu_milli + other.cpu_milli, memory_bytes=self.memory_bytes + other.memory_bytes
        )

    def __sub__(self, other: BatchResources) -> BatchResources:
        """Subtract per resource; the result may be negative, see `floored`."""
        if not other.cpu_milli and not other.memory_bytes:
            return self
        return BatchResources(
            cpu_milli=self.cpu_milli - other.cpu_milli, memory_bytes=self.memory_bytes - other.memory_bytes
        )

    def floored(self) -> BatchResources:
        """Raise each negative component to zero."""
        return self if self.cpu_milli >= 0 and self.memory_bytes >= 0 else self.at_least(ZERO_BATCH)

    def at_least(self, other: BatchResources) -> BatchResources:
        """Take the larger value per resource."""
        if self.cpu_milli >= other.cpu_milli and self.memory_bytes >= other.memory_bytes:
            return self
        return BatchResources(
            cpu_milli=max(self.cpu_milli, other.cpu_milli),
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
        )

    def at_most(self, other: BatchResources) -> BatchResources:
        """Take the smaller value per resource."""
        if self.cpu_milli <= other.cpu_milli and self.memory_bytes <= other.memory_bytes:
            return self
        return BatchResources(
            cpu_milli=min(self.cpu_milli, other.cpu_milli),
            memory_bytes=min(self.memory_bytes, other.memory_bytes),
        )

    def fits_in(self, other: BatchResources) -> bool:
        """Tell whether no component is larger than in `other`."""
        return self.cpu_milli <= other.cpu_milli and self.memory_bytes <= other.memory_bytes


class YarnResources(Struct, frozen=True, kw_only=True, gc=False):
    """Hold an amount as the ResourceManager counts it: memory in MiB and whole vcores."""

    memory_mib: int
    vcores: int

    def __add__(self, other: YarnResources) -> YarnResources:
        return YarnResources(memory_mib=self.memory_mib + other.memory_mib, vcores=self.vcores + other.vcores)

    def at_least(self, other: YarnResources) -> YarnResources:
        """Take the larger value per resource."""
        if self.memory_mib >= other.memory_mib and self.vcores >= other.vcores:
            return self
        return YarnResources(memory_mib=max(self.memory_mib, other.memory_mib), vcores=max(self.vcores, other.vcores))

    def at_most(self, other: YarnResources) -> YarnResources:
        """Take the smaller value per resource."""
        if self.memory_mib <= other.memory_mib and self.vcores <= other.vcores:
            return self
        return YarnResources(memory_mib=min(self.memory_mib, other.memory_mib), vcores=min(self.vcores, other.vcores))

    def fits_in(self, other: YarnResources) -> bool:
        """Tell whether no component is larger than in `other`."""
        return self.memory_mib <= other.memory_mib and self.vcores <= other.vcores


def less(amount: BatchResources, *parts: BatchResources) -> BatchResources:
    """Subtract all parts from an amount and raise each negative component to zero; one value is made, not several."""
    cpu_milli, memory_bytes = amount.cpu_milli, amount.memory_bytes
    for part in parts:
        cpu_milli -= part.cpu_milli
        memory_bytes -= part.memory_bytes
    return BatchResources(
        cpu_milli=cpu_milli if cpu_milli > 0 else 0, memory_bytes=memory_bytes if memory_bytes > 0 else 0
    )


ZERO_BATCH = BatchResources(cpu_milli=0, memory_bytes=0)
ZERO_YARN = YarnResources(memory_mib=0, vcores=0)
