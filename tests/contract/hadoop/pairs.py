# SPDX-License-Identifier: Apache-2.0
"""Run pairs of embedded ResourceManagers and describe them as one cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses
from yarn_copilot.hadoop.model import NodeId

NODE = NodeId("nm-0", 8041)


def cluster_of(*managers: EmbeddedYarn) -> ClusterConfiguration:
    """Describe ResourceManagers as one cluster."""
    return ClusterConfiguration(
        id="c",
        resource_managers=tuple(
            ResourceManagerAddresses(
                rm_id=f"rm{number}",
                client=Address(manager.options.host, manager.client_port.port),
                admin=Address(manager.options.host, manager.admin_port.port),
            )
            for number, manager in enumerate(managers, start=1)
        ),
    )


@asynccontextmanager
async def pair(*, active: tuple[bool, bool] = (True, False)) -> AsyncIterator[tuple[EmbeddedYarn, EmbeddedYarn]]:
    """Run rm1 and rm2 with the same node; the active ones know it."""
    async with AsyncExitStack() as stack:
        managers = []
        for number, is_active in enumerate(active, start=1):
            options = EmbeddedYarnOptions(
                heartbeat_seconds=None, rm_id=f"rm{number}", is_active=is_active, admins=frozenset(("yarn",))
            )
            manager = await stack.enter_async_context(EmbeddedYarn(options))
            manager.add_node(NODE.host)
            managers.append(manager)
        yield managers[0], managers[1]


async def swap(old: EmbeddedYarn, new: EmbeddedYarn) -> None:
    """Make `old` stand by and `new` active, with the node registered."""
    await old.become_standby()
    await activate(new)


async def activate(manager: EmbeddedYarn) -> None:
    """Make a ResourceManager active, with the node registered."""
    await manager.become_active()
    manager.heartbeat()
