# SPDX-License-Identifier: Apache-2.0
"""Play one NodeManager process: what it was configured with, what it was told since, whether it lives."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.embedded.yarn.containers import EmbeddedContainer
from lab.embedded.yarn.resource_manager import NodeAction, ResourceManagerState
from yarn_copilot.hadoop.model import NodeId, Resource


@dataclass(slots=True, kw_only=True, eq=False)
class EmbeddedNodeManager:
    """Be one NodeManager.

    Attributes:
        configured: what its configuration says; a fresh process registers with it.
        adopted: what it registers with now: the last value that a heartbeat answer brought.
        is_alive: the process runs.
        is_reachable: its heartbeats arrive; False plays a network that is cut.
        is_healthy: its own health check passes.
        shutdown_diagnostics: why the ResourceManager sent it away; empty while it did not.
        survivors: containers that still run while no ResourceManager knows them.
    """

    node_id: NodeId
    configured: Resource
    http_port: int
    adopted: Resource = field(init=False)
    is_alive: bool = True
    is_reachable: bool = True
    is_healthy: bool = True
    shutdown_diagnostics: str = ""
    survivors: list[EmbeddedContainer] = field(default_factory=list)
    _is_registered: bool = False
    _response_id: int = 0

    def __post_init__(self) -> None:
        """Start with the configured capacity."""
        self.adopted = self.configured

    def beat(self, rm: ResourceManagerState, now: float) -> None:
        """Send one heartbeat, and register before if that is needed."""
        if not self.is_alive or not self.is_reachable:
            return
        if not self._is_registered and not self._register(rm, now):
            return
        answer = rm.heartbeat(self.node_id, self._response_id, now=now, healthy=self.is_healthy)
        if answer.action is NodeAction.RESYNC:
            self._register(rm, now)
            return
        self._response_id = answer.response_id
        if answer.resource is not None:
            self.adopted = answer.resource

    def kill(self) -> None:
        """End the process without a word, its containers with it."""
        self.is_alive = False
        self._is_registered = False
        self.survivors.clear()

    def stop(self, rm: ResourceManagerState) -> None:
        """End the process in good order: it unregisters."""
        self.kill()
        rm.unregister(self.node_id)

    def start(self) -> None:
        """Start a fresh process, which knows only its configuration."""
        self.adopted = self.configured
        self.is_alive = True
        self.shutdown_diagnostics = ""
        self._is_registered = False

    def forget_registration(self, survivors: list[EmbeddedContainer]) -> None:
        """Notice that the ResourceManager is gone; containers go on."""
        self._is_registered = False
        self.survivors = survivors if self.is_alive else []

    def _register(self, rm: ResourceManagerState, now: float) -> bool:
        answer = rm.register(self.node_id, self.adopted, http_port=self.http_port, now=now, containers=self.survivors)
        self.survivors = []
        self._response_id = 0
        self._is_registered = answer.action is NodeAction.NORMAL
        if answer.action is NodeAction.SHUTDOWN:
            self.shutdown_diagnostics = answer.diagnostics
            self.is_alive = False
        return self._is_registered
