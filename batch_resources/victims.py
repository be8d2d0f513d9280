# SPDX-License-Identifier: Apache-2.0
"""Choose which YARN containers die when room is needed, and no more of them than needed.

The order is that of the people who own the work: OPPORTUNISTIC containers before GUARANTEED ones, the youngest
first (it has lost the least), and an ApplicationMaster only when everything else together is not enough, because
its death restarts the whole application. Node side and controller use this one policy. Pure: who is a candidate,
and whether killing worked, is known elsewhere.

Where a ResourceManager takes containers from a node that was made smaller, it has the same order, and by youngest it
means the last one allocated (SchedulerNode.getContainersToKill, Hadoop 3.3.6 to 3.5.0: RMContainer.getCreationTime).
A node is not told when that was. It sees starts, which come later, in an order of their own: images and files that one
task needs and another does not. But numbers within an application are given in the order of allocation, so a container
was allocated before each later one of its application started, and the earliest such start dates it. With these dates
both ends take the same containers of one application, and of several ones as nearly as starts tell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from batch_resources.resources import ZERO_BATCH, BatchResources


class ExecutionType(StrEnum):
    """Tell containers with a promise of the ResourceManager from those without; the values are YARN's own."""

    GUARANTEED = "GUARANTEED"
    OPPORTUNISTIC = "OPPORTUNISTIC"


class Candidate(Struct, frozen=True, kw_only=True):
    """Describe one container that may be killed.

    Attributes:
        container_id: YARN's id; of two equally young containers the one with the larger id dies first.
        holds: what its end gives back; no component is negative.
        started_at: start in seconds on any clock common to all candidates; None: unknown, and where its application's
            other containers do not date it either, it counts as oldest.
        application_id: its application; empty stands for one of its own.
        turn: its place among the application's containers in the order of allocation: attempt, epoch, number.
        is_application_master: whether the application dies with it.
        execution_type: OPPORTUNISTIC dies first.
    """

    container_id: str
    holds: BatchResources
    started_at: float | None
    application_id: str = ""
    turn: tuple[int, ...] = ()
    is_application_master: bool = False
    execution_type: ExecutionType = ExecutionType.GUARANTEED


class Choice(Struct, frozen=True, kw_only=True):
    """Hold the victims in the order in which they should die.

    Attributes:
        victims: no proper subset of them frees `reachable`.
        freed: sum of what they hold.
        missing: the part of the ask that no set of candidates can free; zero when the ask is met.
    """

    victims: tuple[Candidate, ...]
    freed: BatchResources
    missing: BatchResources

    @property
    def is_sufficient(self) -> bool:
        """Tell whether the whole ask is met."""
        return self.missing == ZERO_BATCH


def kill_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates so that the first one is the first to die."""
    every = list(candidates)
    dates = _dates(every)

    def rank(candidate: Candidate) -> tuple[bool, bool, float]:
        is_promised = candidate.execution_type is not ExecutionType.OPPORTUNISTIC
        return candidate.is_application_master, is_promised, -dates[candidate.container_id]

    by_number = sorted(every, key=lambda one: (one.application_id, one.turn, one.container_id), reverse=True)
    return sorted(by_number, key=rank)


def choose_victims(candidates: Iterable[Candidate], asked: BatchResources) -> Choice:
    """Choose containers whose end frees at least what is asked for, per resource.

    Where all candidates together hold less than asked, everything that holds some of the resource that is lacking is
    chosen. A candidate that holds nothing of what is lacking is never chosen.

    Args:
        candidates: containers that hold something now; those that are dying already must be left out, or what they
            hold is counted twice.
        asked: milli-cores and bytes to free; zero in a component asks for nothing of it.

    Raises:
        ValueError: a component of the ask is negative.
    """
    if not ZERO_BATCH.fits_in(asked):
        raise ValueError(f"cannot free a negative amount: {asked.cpu_milli} milli-cores, {asked.memory_bytes} bytes")
    order = kill_order(candidates)
    reachable = asked.at_most(total(order))
    victims = _without_needless(_enough(order, reachable), reachable)
    return Choice(victims=tuple(victims), freed=total(victims), missing=asked - reachable)


def total(candidates: Iterable[Candidate]) -> BatchResources:
    """Sum what candidates hold."""
    cpu_milli = memory_bytes = 0
    for candidate in candidates:
        cpu_milli += candidate.holds.cpu_milli
        memory_bytes += candidate.holds.memory_bytes
    return BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)


def _dates(candidates: Iterable[Candidate]) -> dict[str, float]:
    """Date each allocation as late as starts allow; never against the order within an application."""
    applications: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        applications[candidate.application_id or candidate.container_id].append(candidate)
    return {name: date for together in applications.values() for name, date in _dates_of_one(together)}


def _dates_of_one(together: list[Candidate]) -> list[tuple[str, float]]:
    """Date the containers of one application; unknown is minus infinity."""
    in_turn = sorted(together, key=lambda one: (one.turn, one.container_id))
    # Whoever came after the last one whose start is known is no older than that one.
    known = [one.started_at for one in in_turn if one.started_at is not None]
    earliest = known[-1] if known else -math.inf
    dates = []
    for one in reversed(in_turn):
        earliest = earliest if one.started_at is None else min(earliest, one.started_at)
        dates.append((one.container_id, earliest))
    return dates


def _enough(order: list[Candidate], reachable: BatchResources) -> list[Candidate]:
    """Take candidates in their order until the ask is met, passing over those that hold nothing of what is lacking.

    What is lacking only becomes less, so passing one over never makes a later one necessary.
    """
    taken: list[Candidate] = []
    lacking = reachable
    for candidate in order:
        if lacking == ZERO_BATCH:
            break
        rest = (lacking - candidate.holds).floored()
        if rest != lacking:
            taken.append(candidate)
            lacking = rest
    return taken


def _without_needless(taken: list[Candidate], reachable: BatchResources) -> list[Candidate]:
    """Spare whoever became needless, those that die last first.

    One pass is enough: a candidate that could not be spared from a larger set cannot be spared from a smaller one.
    """
    kept = list(taken)
    excess = total(taken) - reachable
    for candidate in reversed(taken):
        if candidate.holds.fits_in(excess):
            kept.remove(candidate)
            excess = excess - candidate.holds
    return kept
