# SPDX-License-Identifier: Apache-2.0
"""Hold what parenting knows about each container's group, and hand out copies of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nm_proxy.cgroup.tree import Values
from nm_proxy.parenting.belonging import Root
from nm_proxy.parenting.planning import Repair


@dataclass(slots=True, kw_only=True)
class Record:
    """Hold one container; belongs to the thread of the adopter.

    Attributes:
        path: its group.
        root: the process of its pid file; None where there is none that is believed.
        ancestors: of that process: a script of the NodeManager waits for it outside, to write down its
            exit code, and has the same environment.
        launched_at: when the pid file was written, seconds since 1970; None without one.
        in_force: values that were written or read back as wanted; None before.
        wanted: values that the NodeManager's figures ask for; None while it has not said.
        vcores: what the NodeManager said last; 1 before.
        is_settled: everyone who belongs is inside.
        pids: who was inside at the last look.
        error: what stands in the way, in words.
        changed_at: when a process or a value was last put in place for it, seconds since 1970; None: never.
        is_measured: its latency was recorded, or it was there before this program.
        is_ahead: its group was made, and perhaps limited, before its process was there.
    """

    path: str
    root: Root | None = None
    ancestors: frozenset[Root] = frozenset()
    launched_at: float | None = None
    in_force: Values | None = None
    wanted: Values | None = None
    vcores: int = 1
    is_settled: bool = False
    pids: frozenset[int] = frozenset()
    error: str = ""
    changed_at: float | None = None
    is_measured: bool = False
    is_ahead: bool = False

    @property
    def is_done(self) -> bool:
        """Tell whether everyone is inside and the limits are in force."""
        return self.is_settled and self.wanted is not None and self.in_force == self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """Hold a copy of one record, for other threads and for answers."""

    path: str
    root: Root | None
    launched_at: float | None
    is_done: bool
    error: str


@dataclass(slots=True, kw_only=True)
class PassReport:
    """Hold what one pass did.

    Attributes:
        repaired: each thing that somebody else had changed, with its container's id; "" is the parent.
        latencies: seconds from pid file to limits in force, for each container that got there.
        adopted: containers whose processes are all inside now and were not before.
        removed: empty groups that were removed.
        unbelieved: pid files that name no process of the container.
        errors: what failed, by container id; "" is the parent.
    """

    repaired: list[tuple[str, Repair]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unbelieved: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def repairs(self) -> list[Repair]:
        """Give what was repaired, whoever's it was."""
        return [repair for _, repair in self.repaired]

    def repair(self, container_id: str, repairs: Iterable[Repair]) -> None:
        """Note what was repaired of one container, "" for the parent."""
        self.repaired += [(container_id, one) for one in repairs]
