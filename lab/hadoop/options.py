# SPDX-License-Identifier: Apache-2.0
"""Define what can be chosen about the lab's YARN."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnOptions:
    """Choose sizes, times and extra properties of the YARN cluster.

    Attributes:
        floor_memory_mib, floor_vcores: capacity that each NodeManager registers with.
        minimum_memory_mib, minimum_vcores: the scheduler's smallest allocation; a floor below it is refused by the RM.
        maximum_memory_mib, maximum_vcores: the scheduler's largest allocation.
        heartbeat_millis: time between two heartbeats of a NodeManager.
        expiry_millis: a NodeManager silent for so long is LOST.
        recover_applications: keep applications over an RM restart (state store in files, work preserving).
        recover_containers: keep containers over a NodeManager restart.
        resource_manager_heap_mib, node_manager_heap_mib: Java heap limits.
        administrators: `yarn.admin.acl`.
        domain: domain of the NodeManagers' host names, `nm-<N>.<domain>`.
        nameless: numbers (from 1) of NodeManagers whose address has no name: the RM knows them by their IPv4 address.
        unstarted: numbers (from 1) of NodeManagers that the lab prepares but leaves to the test to start.
        properties: further yarn-site.xml properties; they win.
    """

    floor_memory_mib: int = 1024
    floor_vcores: int = 1
    minimum_memory_mib: int = 128
    minimum_vcores: int = 1
    maximum_memory_mib: int = 1_048_576
    maximum_vcores: int = 1024
    heartbeat_millis: int = 200
    expiry_millis: int = 15_000
    recover_applications: bool = True
    recover_containers: bool = False
    resource_manager_heap_mib: int = 512
    node_manager_heap_mib: int = 192
    administrators: str = "yarn"
    domain: str = "lab.internal"
    nameless: Collection[int] = ()
    unstarted: Collection[int] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
