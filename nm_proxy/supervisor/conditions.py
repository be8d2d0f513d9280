# SPDX-License-Identifier: Apache-2.0
"""Judge health and readiness from what is seen of the NodeManager and the agent; pure.

Ready means that the ResourceManager may send work here now. Healthy is what a liveness probe may act on, and its act
is to end the container with everything in it: so a trouble that a restart of the container cannot mend, or that
would cost a running task, does not make it unhealthy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nm_proxy.draining import DrainState
from nm_proxy.nodemanager.model import Answering


class Phase(StrEnum):
    """Say what the NodeManager's process does."""

    STARTING = "starting"
    """Not started yet: the agent comes first."""
    RUNNING = "running"
    BACKING_OFF = "backing-off"
    """It ended and is started again after a wait."""
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Hold one look.

    Attributes:
        phase: of the process.
        failures: starts in a row that did not get stable.
        answering: how its web pages answered last.
        detail: what was wrong with them.
        is_healthy: by its own word; None where it was not heard.
        health_report: its words.
        is_connected: it has a connection to a ResourceManager.
        drain: the drain state.
        containers: how many are alive here; None where that is unknown.
        agent_error: why the agent does not work; empty where it does.
        configuration_error: why the last rendering failed; empty where it did not.
    """

    phase: Phase
    failures: int = 0
    answering: Answering = Answering.NEVER_ASKED
    detail: str = ""
    is_healthy: bool | None = None
    health_report: str = ""
    is_connected: bool = False
    drain: DrainState = DrainState.ACTIVE
    containers: int | None = None
    agent_error: str = ""
    configuration_error: str = ""


def why_not_ready(seen: Condition) -> list[str]:
    """List what keeps work away from this node; empty where nothing does."""
    reasons = []
    if seen.phase is not Phase.RUNNING:
        reasons.append(f"the NodeManager is {seen.phase.value}")
    elif seen.answering is not Answering.ANSWERS:
        reasons.append(
            f"the NodeManager's pages: {seen.answering.value}" + (f" ({seen.detail})" if seen.detail else "")
        )
    elif seen.is_healthy is False:
        reasons.append(f"the NodeManager calls itself unhealthy: {seen.health_report}")
    elif not seen.is_connected:
        reasons.append("the NodeManager has no connection to a ResourceManager")
    if seen.drain is not DrainState.ACTIVE:
        reasons.append(f"the node is {seen.drain.value}")
    if seen.agent_error:
        reasons.append(f"the agent does not work: {seen.agent_error}")
    return reasons


def why_not_healthy(seen: Condition, *, start_failures: int) -> str:
    """Say why a new container would help; empty where it would not, or would cost tasks."""
    if seen.failures < start_failures or seen.containers != 0 or seen.phase in (Phase.STOPPING, Phase.STOPPED):
        return ""
    return f"the NodeManager ended {seen.failures} times in a row soon after its start, and no container runs"
