# SPDX-License-Identifier: Apache-2.0
"""Say how much a node could give to pods that wait: at once, and by moving the boundary."""

from __future__ import annotations

from typing import NamedTuple

from batch_resources.demand.placement import Host
from batch_resources.resources import ZERO_BATCH, BatchResources


class Room(NamedTuple):
    """Hold one node's room for pods that are not scheduled.

    Attributes:
        now: what kube-scheduler could book at once, `A - K`.
        most: what it could book after the whole free part has been moved to it, down to YARN's minimum.
        is_contested: YARN waits for the node's free part as well, or may do so for all that is known.
    """

    host: Host
    now: BatchResources = ZERO_BATCH
    most: BatchResources = ZERO_BATCH
    is_contested: bool = True


class Shape(NamedTuple):
    """Hold what many pods have in common: their request, and the number of their placement."""

    request: BatchResources
    placement: int
