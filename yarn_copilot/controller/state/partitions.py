# SPDX-License-Identifier: Apache-2.0
"""Keep what one YARN cluster's applications wait for, by partition, and since when they do not.

Between two containers an application waits for nothing for a moment. What a partition waited for counts therefore until
it has waited for nothing for a while; otherwise the boundary would swing with every container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from yarn_copilot.hadoop.model import QueueInfo, Resource

DEFAULT_PARTITION = ""
"""The nodes without a label."""


class PartitionDemand:
    """Hold the pending resources of one cluster.

    Attributes:
        pending: by partition, as last read; the default partition is the empty text.
        knows_labels: the partitions with a label were read too; one that is missing waits for nothing.
    """

    def __init__(self) -> None:
        """Begin without knowledge."""
        self.pending: Mapping[str, Resource] = {}
        self.knows_labels = False
        self._is_known = False
        self._waited_at: dict[str, float] = {}
        self._waiting: frozenset[str] = frozenset()

    def take(
        self, default: Resource, labelled: Mapping[str, Resource] | None, *, now: float, quiet_seconds: float
    ) -> bool:
        """Take a read.

        Args:
            default: what the default partition waits for.
            labelled: what the partitions with a label wait for; None when that cannot be read.
            now: monotonic seconds.
            quiet_seconds: time without pending resources after which a partition waits no more.

        Returns:
            Whether the answer of `waits` may have changed for any node.
        """
        before = (self._is_known, self.knows_labels, self._waiting)
        self.pending = {**(labelled or {}), DEFAULT_PARTITION: default}
        self.knows_labels = labelled is not None
        self._is_known = True
        for partition, amount in self.pending.items():
            if amount.memory_mib > 0 or amount.vcores > 0:
                self._waited_at[partition] = now
        self._waited_at = {name: at for name, at in self._waited_at.items() if at == now or now - at < quiet_seconds}
        self._waiting = frozenset(self._waited_at)
        return before != (self._is_known, self.knows_labels, self._waiting)

    def forget(self) -> bool:
        """Note that what is waited for is not known any more; tell whether it was."""
        was_known, self._is_known = self._is_known, False
        self.pending, self.knows_labels = {}, False
        return was_known

    def waits(self, labels: Sequence[str]) -> bool | None:
        """Tell whether applications wait for a node with these labels; None when that is unknown.

        Demand of the default partition may use a labelled node where its partition is shared, which is not told.
        """
        if not self._is_known:
            return None
        partition = labels[0] if labels else DEFAULT_PARTITION
        if partition in self._waiting:
            return True
        if partition == DEFAULT_PARTITION:
            return False
        return None if not self.knows_labels or DEFAULT_PARTITION in self._waiting else False


def default_pending(queue: QueueInfo) -> Resource:
    """Sum what the leaf queues below a queue wait for; RPC tells only of the default partition."""
    memory_mib = vcores = 0
    for leaf in _leaves(queue):
        memory_mib += leaf.pending.memory_mib
        vcores += leaf.pending.vcores
    return Resource(memory_mib=memory_mib, vcores=vcores)


def _leaves(queue: QueueInfo) -> Iterator[QueueInfo]:
    if not queue.children:
        yield queue
    for child in queue.children:
        yield from _leaves(child)
