# SPDX-License-Identifier: Apache-2.0
"""Measure what a play leaves unused although somebody waits, and how long work waits. Pure: time is passed in."""

from __future__ import annotations

from dataclasses import dataclass

from batch_resources.resources import BatchResources


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Hold how many pods and containers wait at a moment."""

    pods: int = 0
    containers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Hold one node, cpu only: what there is, what is taken, and what each scheduler may still hand out.

    Attributes:
        origin_milli: O.
        taken_milli: K + Y.
        kubernetes_milli: what kube-scheduler may still book.
        yarn_milli: what the ResourceManager may still hand out.
    """

    origin_milli: int
    taken_milli: int
    kubernetes_milli: int
    yarn_milli: int

    @classmethod
    def of(
        cls, origin: BatchResources, *, held: BatchResources, used: BatchResources, offered: int, capacity: int
    ) -> Offer:
        """Compute an offer from a node's figures, in milli-cores where they are numbers."""
        return cls(
            origin_milli=origin.cpu_milli,
            taken_milli=held.cpu_milli + used.cpu_milli,
            kubernetes_milli=max(offered - held.cpu_milli, 0),
            yarn_milli=max(capacity - used.cpu_milli, 0),
        )


def unusable_milli(offer: Offer, waiting: Waiting) -> int:
    """Give the free part that nobody can use now.

    While one side alone waits that is what is not on offer to it; else what is on offer to neither.
    """
    free = max(offer.origin_milli - offer.taken_milli, 0)
    if waiting.pods and not waiting.containers:
        usable = offer.kubernetes_milli
    elif waiting.containers and not waiting.pods:
        usable = offer.yarn_milli
    else:
        usable = offer.kubernetes_milli + offer.yarn_milli
    return max(free - usable, 0)


class UsageMeter:
    """Add up over a play."""

    def __init__(self) -> None:
        """Start at zero."""
        self._unusable = 0.0
        self._origin = 0.0
        self._pod_seconds = 0.0
        self._container_seconds = 0.0

    def take_node(self, offer: Offer, waiting: Waiting, seconds: float) -> None:
        """Take a reading of a node that stands for so many seconds."""
        self._unusable += unusable_milli(offer, waiting) * seconds
        self._origin += offer.origin_milli * seconds

    def take_waiting(self, waiting: Waiting, seconds: float) -> None:
        """Take the queues' lengths for so many seconds."""
        self._pod_seconds += waiting.pods * seconds
        self._container_seconds += waiting.containers * seconds

    @property
    def unusable_percent(self) -> float:
        """Give the part of origin, over time, that nobody could use."""
        return 100.0 * self._unusable / self._origin if self._origin else 0.0

    def pod_wait_seconds(self, asked: int) -> float | None:
        """Give the mean time that a pod waited, of so many."""
        return self._pod_seconds / asked if asked else None

    def container_wait_seconds(self, asked: int) -> float | None:
        """Give the mean time that a container waited, of so many."""
        return self._container_seconds / asked if asked else None
