# SPDX-License-Identifier: Apache-2.0
"""Count what waiting pods hold of the nodes that YARN waits for too, against the share that their weight gives them."""

from __future__ import annotations

from batch_resources.demand.rooms import Room
from batch_resources.resources import ZERO_BATCH, BatchResources


class Share:
    """Hold the sums over all contested nodes.

    Attributes:
        yarn_weight: YARN's share where both sides wait, against `kubernetes_weight`.
        granted: what pods are promised there.
        contested: what could be promised there.
    """

    def __init__(self, *, yarn_weight: int, kubernetes_weight: int) -> None:
        """Begin without nodes."""
        self.yarn_weight = yarn_weight
        self.kubernetes_weight = kubernetes_weight
        self.granted = self.contested = ZERO_BATCH

    def replace(self, before: Room | None, after: Room | None, load: BatchResources) -> None:
        """Take another room of a node on which pods hold `load`."""
        if before is not None and before.is_contested:
            self.granted, self.contested = self.granted - load, self.contested - before.most
        if after is not None and after.is_contested:
            self.granted, self.contested = self.granted + load, self.contested + after.most

    def grant(self, room: Room | None, more: BatchResources) -> None:
        """Count a change of what pods hold on a node."""
        if room is not None and room.is_contested:
            self.granted = self.granted + more

    def has_some_left(self, request: BatchResources) -> bool:
        """Tell whether pods hold less than their share of each resource that one more of them asks for."""
        weights, own = self.yarn_weight + self.kubernetes_weight, self.kubernetes_weight
        granted, contested = self.granted, self.contested
        if request.cpu_milli > 0 and granted.cpu_milli * weights >= contested.cpu_milli * own:
            return False
        return not (request.memory_bytes > 0 and granted.memory_bytes * weights >= contested.memory_bytes * own)
