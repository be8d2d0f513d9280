# SPDX-License-Identifier: Apache-2.0
"""Model the configuration file: one class per concern, strict types, each field documented with unit and reason.

The file is YAML, normally a ConfigMap. Unknown keys are refused. Fields marked `reloadable` in `json_schema_extra`
take effect without a restart; the others are reported as "needs restart".
"""

from __future__ import annotations

from typing import Self

from yarn_copilot.config.settings.base import RELOADABLE, FilePath, Seconds, Section
from yarn_copilot.config.settings.capacity import CapacitySettings, CpuUnit, NodeMode, ReserveSettings, SharingMode
from yarn_copilot.config.settings.dips import DipSettings
from yarn_copilot.config.settings.giving_way import GivingWaySettings
from yarn_copilot.config.settings.hadoop import HadoopSettings, Transport, TransportChoice
from yarn_copilot.config.settings.kubernetes import KubernetesSettings
from yarn_copilot.config.settings.node_agents import NodeAgentSettings
from yarn_copilot.config.settings.node_labels import NodeLabelSettings
from yarn_copilot.config.settings.process import LeaderElectionSettings, LogSettings, ServerSettings
from yarn_copilot.config.settings.strict import StrictSettings
from yarn_copilot.config.settings.yarn import NodeManagerSettings, YarnSettings

__all__ = [
    "CapacitySettings",
    "CpuUnit",
    "DipSettings",
    "FilePath",
    "GivingWaySettings",
    "HadoopSettings",
    "KubernetesSettings",
    "LeaderElectionSettings",
    "LogSettings",
    "NodeAgentSettings",
    "NodeLabelSettings",
    "NodeManagerSettings",
    "NodeMode",
    "RELOADABLE",
    "ReserveSettings",
    "Seconds",
    "Section",
    "ServerSettings",
    "Settings",
    "SharingMode",
    "StrictSettings",
    "Transport",
    "TransportChoice",
    "YarnSettings",
]


class Settings(Section):
    """Be the whole file."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    hadoop: HadoopSettings = HadoopSettings()
    yarn: YarnSettings = YarnSettings()
    node_managers: NodeManagerSettings = NodeManagerSettings()
    node_agents: NodeAgentSettings = NodeAgentSettings()
    capacity: CapacitySettings = CapacitySettings()
    node_labels: NodeLabelSettings = NodeLabelSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()

    def fixed_changes(self, other: Self) -> frozenset[str]:
        """Keep a process that observes from writing, and the other way round: only one of both holds a Lease."""
        return frozenset({"capacity.mode"}) if self.capacity.observes != other.capacity.observes else frozenset()
