# SPDX-License-Identifier: Apache-2.0
"""Hold what was seen of one YARN cluster, for checks that do no I/O of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from yarn_copilot.config.settings import Transport
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.model import NodeId, NodeReport, Resource


class Role(StrEnum):
    """Say what a ResourceManager answered to the harmless update that doctor sends."""

    ACTIVE = "active"
    STANDBY = "standby"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerFacts:
    """Hold what one ResourceManager said.

    Attributes:
        rm_id: its id; empty without high availability.
        address: where writes go to.
        role: what it is.
        error: why it is `FAILED`.
        web_address: its web service; None where it is not known.
        web_error: why that did not answer.
        version: resourceManagerVersion; None where it was not read.
        clock_ahead_seconds: its clock less ours, to half a second; None where it was not read.
        properties: keys of its own configuration that it told.
    """

    rm_id: str
    address: str
    role: Role
    error: YarnCopilotError | None = None
    web_address: str | None = None
    web_error: YarnCopilotError | None = None
    version: str | None = None
    clock_ahead_seconds: float | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFile:
    """Hold what capacity-scheduler.xml says; `calculator` None means that the key is absent."""

    path: Path
    calculator: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicResources:
    """Hold which nodes dynamic-resources.xml lists."""

    path: Path
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFacts:
    """Hold how the ResourceManager's list and Kubernetes go together.

    Attributes:
        matched: node ids that stand for a pod or Node.
        unmatched_sources: pods and Nodes with a NodeManager that the list does not have.
        unknown_clusters: sources that name a cluster which is not configured, with its id.
    """

    matched: frozenset[NodeId]
    unmatched_sources: tuple[str, ...]
    unknown_clusters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Hold everything that was seen of one cluster.

    Attributes:
        cluster: its configuration.
        transport: how it will be reached.
        user: who calls.
        proxy_user: in whose name; None: nobody else.
        is_forced: hadoop.allow_unsafe_version.
        floor: what NodeManagers are expected to register with, of the settings.
        managers: its ResourceManagers.
        reports: the node list; None when it could not be read, `read_error` says why.
        registered: capacities that NodeManagers told to register with.
        silent_managers: NodeManagers that were asked and did not tell.
        unresolvable: hosts of NodeManagers that cannot be resolved from here.
        scheduler_file: capacity-scheduler.xml; None where there is none here.
        dynamic_resources: dynamic-resources.xml; None where there is none here.
        unreadable_files: sentences about further files that could not be read.
        match: None when Kubernetes could not be read.
        now: wall clock at the time of reading, seconds since 1970.
    """

    cluster: ClusterConfiguration
    transport: Transport = Transport.RPC
    user: str = "yarn"
    proxy_user: str | None = None
    is_forced: bool = False
    floor: Resource = Resource(1024, 1)  # noqa: RUF009  (frozen)
    managers: tuple[ManagerFacts, ...] = ()
    reports: Sequence[NodeReport] | None = None
    read_error: YarnCopilotError | None = None
    registered: Mapping[NodeId, Resource] = field(default_factory=dict)
    silent_managers: tuple[NodeId, ...] = ()
    unresolvable: tuple[str, ...] = ()
    scheduler_file: SchedulerFile | None = None
    dynamic_resources: DynamicResources | None = None
    unreadable_files: tuple[str, ...] = ()
    match: MatchFacts | None = None
    now: float = 0.0

    def told(self, key: str) -> str | None:
        """Give a key of the ResourceManagers' own configuration; the active one's word counts first."""
        for role in (Role.ACTIVE, Role.STANDBY, Role.FAILED):
            for manager in self.managers:
                if manager.role is role and key in manager.properties:
                    return manager.properties[key]
        return None
