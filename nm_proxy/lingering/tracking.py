# SPDX-License-Identifier: Apache-2.0
"""Decide which containers linger, since when, and which of them are to be ended now; pure.

While the NodeManager hangs, babbles or cannot be reached nothing can be said about its containers, so nothing is ended
and what was seen before keeps its age. A container that is missing from a list is unknown only if the whole list could
be read, and is ended only once a list that was asked for after the whole delay misses it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from batch_resources.resources import ZERO_BATCH, BatchResources
from nm_proxy.containers import NodeContainer
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import Answering, ContainerReport

DEAD_SECONDS: Final = 60.0
"""A NodeManager that restarts does not listen for some seconds; its containers do not linger yet."""


class Why(StrEnum):
    """Say why a container lingers."""

    FINISHED = "finished"
    """The NodeManager calls it finished and processes are left."""
    UNKNOWN = "unknown"
    """The NodeManager answers and does not list it."""
    NODE_MANAGER_DEAD = "node-manager-dead"
    """The NodeManager has ended; see `NodeManagerView.dead_for`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lingering:
    """Hold one container that lingers.

    Attributes:
        since: when it was first seen so, monotonic seconds.
        holds: what its end would give back.
        due_at: when it is to be ended, monotonic seconds.
    """

    container_id: str
    why: Why
    since: float
    holds: BatchResources
    processes: int
    due_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Hold how long each kind may linger, seconds."""

    finished_seconds: float
    dead_node_manager_seconds: float


def may_linger(view: NodeManagerView, now: float) -> Callable[[ContainerReport | None], bool]:
    """Give a quick test for who need not be looked at: whoever a living NodeManager lists as running."""
    is_dead = (view.dead_for(now) or 0.0) >= DEAD_SECONDS
    return lambda report: is_dead or report is None or report.is_finished


def track(
    before: Mapping[str, Lingering],
    containers: Iterable[NodeContainer],
    view: NodeManagerView,
    *,
    delays: Delays,
    now: float,
) -> dict[str, Lingering]:
    """Find out who lingers now.

    Args:
        before: the result of the last time.
        containers: everybody.
        view: the NodeManager's last list and how it answers.
        delays: until the end.
        now: monotonic seconds.
    """
    found: dict[str, Lingering] = {}
    for container in containers:
        if not container.processes:
            continue
        old = before.get(container.container_id)
        why = _why(container, view, old, now)
        if why is not None:
            found[container.container_id] = _lingering(container, why, old, view=view, delays=delays, now=now)
    return found


def due(lingering: Iterable[Lingering], now: float) -> list[Lingering]:
    """List who is to be ended now, oldest first."""
    return sorted((one for one in lingering if one.due_at <= now), key=lambda one: one.since)


def total_held(lingering: Iterable[Lingering]) -> BatchResources:
    """Sum what lingers: YARN does not count it any more, and nobody else can have it yet."""
    total = ZERO_BATCH
    for one in lingering:
        total = total + one.holds
    return total


def _why(container: NodeContainer, view: NodeManagerView, old: Lingering | None, now: float) -> Why | None:
    if (view.dead_for(now) or 0.0) >= DEAD_SECONDS:
        return Why.NODE_MANAGER_DEAD
    if view.answering is not Answering.ANSWERS:
        return old.why if old is not None else None
    if container.report is None:
        if not view.malformed:
            return Why.UNKNOWN
        return old.why if old is not None else None  # it may be one of those that cannot be read
    return Why.FINISHED if container.is_finished else None


def _is_believed(why: Why, view: NodeManagerView, due_at: float) -> bool:
    """Tell whether who lingers may be ended by what this list says.

    That a container ended is told once and stays true. That it is missing may be because the list is older than it.
    """
    if why is not Why.UNKNOWN:
        return True
    return not view.malformed and view.asked_at is not None and view.asked_at >= due_at


def _lingering(
    container: NodeContainer, why: Why, old: Lingering | None, *, view: NodeManagerView, delays: Delays, now: float
) -> Lingering:
    since = old.since if old is not None and old.why is why else now
    if why is Why.NODE_MANAGER_DEAD:
        due_at = view.answering_since + delays.dead_node_manager_seconds
    elif view.answering is Answering.ANSWERS and _is_believed(why, view, since + delays.finished_seconds):
        due_at = since + delays.finished_seconds
    else:
        due_at = float("inf")
    return Lingering(
        container_id=container.container_id,
        why=why,
        since=since,
        holds=container.holds,
        processes=container.processes,
        due_at=due_at,
    )
