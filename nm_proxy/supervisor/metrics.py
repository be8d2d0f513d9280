# SPDX-License-Identifier: Apache-2.0
"""Count what the supervisor does with the NodeManager; served together with the agent's metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from nm_proxy.supervisor.conditions import Phase


class SupervisorMetrics:
    """Hold the families on a registry of their own; prefix `yarn_copilot_node_`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.starts = Counter(
            "yarn_copilot_node_manager_starts", "NodeManagers started by this supervisor", registry=self.registry
        )
        self.ends = Counter(
            "yarn_copilot_node_manager_ends", "NodeManagers that ended without being told to", registry=self.registry
        )
        self.takeovers = Counter(
            "yarn_copilot_node_manager_takeovers",
            "NodeManagers found running after a crash of the supervisor",
            registry=self.registry,
        )
        self.renderings_failed = Counter(
            "yarn_copilot_node_renderings_failed",
            "Renderings of the Hadoop configuration that failed; the last good one stays in use",
            registry=self.registry,
        )
        self.phase = Gauge(
            "yarn_copilot_node_manager_phase", "1 for what the process does now", ["phase"], registry=self.registry
        )
        self.ready = Gauge("yarn_copilot_node_ready", "1 when /readyz says so", registry=self.registry)
        self.reload_ok = Gauge(
            "yarn_copilot_node_config_last_reload_successful",
            "0 when the settings file on disk is refused",
            registry=self.registry,
        )
        self.reload_ok.set(1)
        self.set_phase(Phase.STARTING)

    def set_phase(self, now: Phase) -> None:
        """Show one phase."""
        for phase in Phase:
            self.phase.labels(phase.value).set(phase is now)

    def render(self) -> bytes:
        """Write the text format."""
        return generate_latest(self.registry)
