# SPDX-License-Identifier: Apache-2.0
"""Decide what a group's values should be and what to do about what they are; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from batch_resources.units import BYTES_PER_MIB
from batch_resources.victims import ExecutionType
from nm_proxy.cgroup.tree import Values
from nm_proxy.cgroup.weights import limit_bytes
from nm_proxy.nodemanager.model import ContainerReport


class Repair(StrEnum):
    """Name what somebody else changed and we put right again; these are values of a metric's label."""

    CPU = "cpu"
    MEMORY = "memory"
    MEMBERSHIP = "membership"
    GROUP = "group"
    PARENT_CPU = "parent-cpu"
    PARENT_MEMORY = "parent-memory"
    PARENT_GROUP = "parent-group"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePlan:
    """Hold which values to write, None for those to leave, and which of the writes are repairs."""

    cpu: int | None = None
    memory_bytes: int | None = None
    repairs: tuple[Repair, ...] = ()


def desired_values(report: ContainerReport | None, container_cpu: Callable[..., int]) -> Values | None:
    """Give what a container's group should have; None while the NodeManager has not said what it was given.

    Args:
        report: the NodeManager's own figures.
        container_cpu: turns vcores into shares or weight, whichever the tree has.
    """
    if report is None or not report.memory_mib or report.vcores is None:
        return None
    opportunistic = report.execution_type is ExecutionType.OPPORTUNISTIC
    return Values(
        cpu=container_cpu(report.vcores, opportunistic=opportunistic),
        memory_bytes=limit_bytes(report.memory_mib * BYTES_PER_MIB),
    )


def plan_values(observed: Values, desired: Values, in_force: Values | None) -> ValuePlan:
    """Compare what a group has with what it should have.

    Args:
        observed: as read.
        desired: as the NodeManager's figures say now.
        in_force: what we know to have been in force before; a value that was in force, is still wanted and reads
            otherwise was changed by somebody else.
    """
    cpu = desired.cpu if observed.cpu != desired.cpu else None
    memory_bytes = desired.memory_bytes if observed.memory_bytes != desired.memory_bytes else None
    repairs = []
    if cpu is not None and in_force is not None and in_force.cpu == cpu:
        repairs.append(Repair.CPU)
    if memory_bytes is not None and in_force is not None and in_force.memory_bytes == memory_bytes:
        repairs.append(Repair.MEMORY)
    return ValuePlan(cpu=cpu, memory_bytes=memory_bytes, repairs=tuple(repairs))


def may_set_wall(wall_bytes: int, used_bytes: int | None) -> bool:
    """Tell whether the wall can be set without killing anybody: what is used now is known and below it."""
    return used_bytes is not None and used_bytes <= wall_bytes
