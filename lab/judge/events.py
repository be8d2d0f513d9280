# SPDX-License-Identifier: Apache-2.0
"""Define the log that is judged, and the verdict.

Times are seconds of the wall clock of the one machine that everything runs on. A version of a Node or pod is dated by
when the watch told it, which is a little after it was stored; the ResourceManager dates its own events.
"""

from __future__ import annotations

from dataclasses import dataclass

from batch_resources.resources import BatchResources


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVersion:
    """Be one stored version of a Node.

    Attributes:
        origin: O as published; None where the annotation is absent.
        allocatable: A; zero where its keys are missing.
        others: P, entries of priority koord-batch that are not the bridge's.
        claimed: T; zero without an entry of the bridge.
    """

    at: float
    version: int
    node: str
    origin: BatchResources | None
    allocatable: BatchResources
    others: BatchResources
    claimed: BatchResources


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVersion:
    """Be one stored version of a pod that is bound, or its end.

    Attributes:
        request: what it has booked; None once it is finished or deleted.
    """

    at: float
    version: int
    pod: str
    node: str
    request: BatchResources | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEvent:
    """Be the moment at which the ResourceManager's scheduler handed out a container, or took it back.

    Attributes:
        size: what it takes; None when it ended.
    """

    at: float
    manager: str
    container: str
    size: BatchResources | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityEvent:
    """Be the moment from which the scheduler works with another total for a NodeManager."""

    at: float
    manager: str
    capacity: BatchResources


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Be a time in which a watch told nothing, because the API server was away: what was stored in it was told after.

    Attributes:
        since: the watch was last heard then.
        at: it was open again; what is missing follows at once.
    """

    since: float
    at: float


Told = NodeVersion | PodVersion | ContainerEvent | CapacityEvent
Event = Told | Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Be one growth while more was handed out than origin.

    Attributes:
        side: `kubernetes` or `yarn`, whoever grew.
        what: the pod or container.
        requested, used, others, origin: K, Y (with the growth in it), P and O at that moment.
    """

    at: float
    node: str
    side: str
    what: str
    requested: BatchResources
    used: BatchResources
    others: BatchResources
    origin: BatchResources

    def __str__(self) -> str:
        return (
            f"{self.at:.3f} {self.node}: {self.side} grew by {self.what}: K={self.requested} Y={self.used} "
            f"P={self.others} O={self.origin}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Hold what a log showed.

    Attributes:
        violations: growths that sold what was sold already.
        after_falls: growths by permissions older than a fall of origin; nobody can take those back in time.
        undecided: growths for which the other side made room so closely that the log cannot order both.
        claims_below_use: sentences, one for each time at which a claim stayed below YARN's use.
        growths: growths judged in all, per side.
        oversold_seconds: time that nodes spent with more handed out than origin, for whatever reason.
    """

    violations: tuple[Finding, ...]
    after_falls: tuple[Finding, ...]
    undecided: tuple[Finding, ...]
    claims_below_use: tuple[str, ...]
    growths: dict[str, int]
    oversold_seconds: float
