# SPDX-License-Identifier: Apache-2.0
"""Make the node side's agent for a NodeManager that the lab runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.hadoop.node_manager import NodeManager
from nm_proxy.agent import Agent
from nm_proxy.agent_settings import AgentSettings


def agent_beside(
    node_manager: NodeManager,
    *,
    hierarchy: str,
    socket: Path,
    parenting: dict[str, Any] | None = None,
    copilot: dict[str, Any] | None = None,
) -> Agent:
    """Make an agent; nothing is started.

    Args:
        node_manager: runs already.
        hierarchy: YARN's directory in the cgroup tree.
        socket: of the copilot API.
        parenting: that section of the settings; None: the defaults.
        copilot: further keys of that section; None: no port for the controller.
    """
    document = {
        "cgroup": {"hierarchy": hierarchy},
        "parenting": parenting or {},
        "node_manager": {
            "url": f"http://{node_manager.identity.address}:{node_manager.identity.ports.web}",
            "local_directories": [str(node_manager.folder / "local")],
        },
        "copilot": {"socket": str(socket), **(copilot or {})},
    }
    return Agent(AgentSettings.model_validate(document))
