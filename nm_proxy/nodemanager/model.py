# SPDX-License-Identifier: Apache-2.0
"""Hold what a NodeManager says about itself and its containers, in its own units: MiB and vcores.

Source: org.apache.hadoop.yarn.server.nodemanager.webapp.dao.{NodeInfo,ContainerInfo} and
...containermanager.container.ContainerState (Hadoop 2.7 to 3.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from batch_resources.victims import ExecutionType

FINISHED_STATES: Final = frozenset(
    {
        "LOCALIZATION_FAILED",
        "EXITED_WITH_SUCCESS",
        "EXITED_WITH_FAILURE",
        "CONTAINER_CLEANEDUP_AFTER_KILL",
        "CONTAINER_RESOURCES_CLEANINGUP",
        "DONE",
        "COMPLETE",
    }
)
"""The NodeManager says its process ended. KILLING is not here: it still holds what it held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """Hold one container of the page `containers`.

    Attributes:
        memory_mib, vcores: what it was given; None where the page did not say.
        state: the NodeManager's own word.
    """

    container_id: str
    state: str
    memory_mib: int | None
    vcores: int | None
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    user: str = ""

    @property
    def is_finished(self) -> bool:
        """Tell whether the NodeManager believes that no process of it is left."""
        return self.state in FINISHED_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """Hold the page `info`.

    Attributes:
        node_id: host:port as the ResourceManager knows it; empty where the page did not say.
        is_healthy: as the NodeManager reports itself.
        memory_mib, vcores: the total, following what the ResourceManager pushed (Hadoop 3.3 and later).
        started_at: seconds since 1970; None where the page did not say. A change is a restart.
    """

    node_id: str
    is_healthy: bool
    health_report: str
    memory_mib: int
    vcores: int
    version: str
    started_at: float | None


class Answering(StrEnum):
    """Tell how the NodeManager answered last."""

    NEVER_ASKED = "never-asked"
    ANSWERS = "answers"
    REFUSES = "refuses"
    """Nothing listens: it is down or starting."""
    UNREACHABLE = "unreachable"
    """No connection came about for a reason that tells nothing of the NodeManager: name, network, certificate."""
    HANGS = "hangs"
    BABBLES = "babbles"
    """Something answers, but not as a NodeManager."""
    WANTS_LOGIN = "wants-login"
    """Its pages want Kerberos, or a name, which a setting has to change."""
