# SPDX-License-Identifier: Apache-2.0
"""Be a YARN cluster inside the process: real Hadoop RPC on loopback ports, containers as records.

`async with EmbeddedYarn() as yarn:` starts it; see `server.EmbeddedYarn`.
"""

from lab.embedded.yarn.containers import Ask, EmbeddedContainer, ExitStatus
from lab.embedded.yarn.node_manager import EmbeddedNodeManager
from lab.embedded.yarn.queues import QueueDefinition
from lab.embedded.yarn.resource_manager import Rules
from lab.embedded.yarn.sasl_server import Authentication
from lab.embedded.yarn.server import EmbeddedYarn, EmbeddedYarnOptions, RecordedUpdate

__all__ = [
    "Ask",
    "Authentication",
    "EmbeddedContainer",
    "EmbeddedNodeManager",
    "EmbeddedYarn",
    "EmbeddedYarnOptions",
    "ExitStatus",
    "QueueDefinition",
    "RecordedUpdate",
    "Rules",
]
