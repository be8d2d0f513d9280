# SPDX-License-Identifier: Apache-2.0
"""Choose which YARN containers die when room is needed, and no more of them than needed.

The order is that of the people who own the work: OPPORTUNISTIC containers before GUARANTEED ones, the youngest
first (it has lost the least), and an ApplicationMaster only when everything else together is not enough, because
its death restarts the whole application. Node side and controller use this one policy. Pure: who is a candidate,
and whether killing worked, is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from batch_resources.resources import ZERO_BATCH, BatchResources


class ExecutionType(StrEnum):
    """Tell containers with a promise of the ResourceManager from those without; the values are YARN's own."""

    GUARANTEED = "GUARANTEED"
    OPPORTUNISTIC = "OPPORTUNISTIC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Describe one container that may be killed.

    Attributes:
        container_id: YARN's id; of two equally young containers the one with the larger id dies first.
        holds: what its end gives back; no component is negative.
        started_at: start in seconds on any clock common to all candidates; None (unknown) counts as oldest.
        is_application_master: whether the application dies with it.
        execution_type: OPPORTUNISTIC dies first.
    """

    container_id: str
    holds: BatchResources
    started_at: float | None
    is_application_master: bool = False
    execution_type: ExecutionType = ExecutionType.GUARANTEED


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
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
    by_id = sorted(candidates, key=lambda candidate: candidate.container_id, reverse=True)
    return sorted(by_id, key=_rank)


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


def _rank(candidate: Candidate) -> tuple[bool, bool, bool, float]:
    return (
        candidate.is_application_master,
        candidate.execution_type is not ExecutionType.OPPORTUNISTIC,
        candidate.started_at is None,
        -(candidate.started_at or 0.0),
    )


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
