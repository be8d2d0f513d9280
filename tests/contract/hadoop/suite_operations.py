# SPDX-License-Identifier: Apache-2.0
"""Say what operators' calls do; runs against the embedded and against a real ResourceManager.

Import the functions into a test module that gives `rm_operations`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection

import pytest

from tests.contract.hadoop.backend import CONTAINER_MEMORY_MIB, RmBackend, reports, until
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import (
    ApplicationState,
    AttributeOperation,
    DecommissionType,
    NodeAttribute,
    NodeId,
    NodeState,
)
from yarn_copilot.hadoop.protocols import administration

LABEL = "spot"
DEADLINE = 20.0


class RmOperations(ABC):
    """Be a ResourceManager without high availability, with an exclude file and node labels switched on."""

    backend: RmBackend

    @abstractmethod
    def exclude(self, hosts: Collection[str]) -> None:
        """Write the exclude file; `refresh_nodes` makes it known."""


async def make_label(backend: RmBackend) -> None:
    """Make the label; the product has no call for that."""
    options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=10, max_response_bytes=1_000_000)
    link = await connection.open_connection(
        backend.cluster.admin_addresses[0], protocol=administration.PROTOCOL, options=options
    )
    # Field 2 of the request: NodeLabelProto with the name in field 1.
    name = b"\x0a" + bytes((len(LABEL),)) + LABEL.encode()
    await link.call("addToClusterNodeLabels", b"\x12" + bytes((len(name),)) + name, timeout_seconds=DEADLINE)
    await link.aclose()


async def test_service_status_is_unknown_without_high_availability(rm_operations: RmOperations) -> None:
    async with rm_operations.backend.client() as client:
        with pytest.raises(errors.UnsupportedCallError):
            await client.get_service_status("")


async def test_running_application_is_listed_with_what_it_uses(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    async with backend.client() as client:
        workload = await backend.run(3, is_alone=True)
        try:
            # Hadoop 3.3 knows the queue by the name it was submitted with, later ones by its last part too.
            queues = ["root.batch.etl", "etl"]
            found = await client.get_applications(states=[ApplicationState.RUNNING], queues=queues)
            assert found
            newest = max(found, key=lambda report: report.start_millis)
            assert newest.queue.rpartition(".")[2] == "etl"
            assert newest.containers >= 3
            assert newest.used.memory_mib >= 3 * CONTAINER_MEMORY_MIB
            assert newest.id.startswith("application_")
            assert newest.finish_millis == 0
        finally:
            await workload.stop()

        async def is_finished() -> bool:
            now = {report.id: report.state for report in await client.get_applications()}
            return now[newest.id].is_final

        await until(is_finished)
        assert await client.get_applications(states=[ApplicationState.RUNNING], queues=["root.interactive"]) == []
        assert len(await client.get_applications(limit=1)) == 1


async def test_graceful_decommission_begins_and_is_taken_back(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    node_id = backend.busy_node
    async with backend.client() as client:
        await until(lambda: is_in(client, node_id, NodeState.RUNNING))
        workload = await backend.run(1)
        try:
            rm_operations.exclude([node_id.host])
            await client.refresh_nodes(DecommissionType.GRACEFUL, timeout_seconds=600)
            await until(lambda: is_in(client, node_id, NodeState.DECOMMISSIONING))
            assert node_id in await client.check_for_decommissioning_nodes()
            rm_operations.exclude([])
            await client.refresh_nodes(DecommissionType.GRACEFUL)
            await until(lambda: is_in(client, node_id, NodeState.RUNNING))
            assert node_id not in await client.check_for_decommissioning_nodes()
        finally:
            rm_operations.exclude([])
            await workload.stop()


async def test_excluded_node_is_decommissioned_at_once_without_grace(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    async with backend.client() as client, backend.fleet(1) as fleet:
        (node,) = fleet.nodes
        rm_operations.exclude([node.node_id.host])
        try:
            await client.refresh_nodes()
            await until(lambda: is_in(client, node.node_id, NodeState.DECOMMISSIONED))
        finally:
            rm_operations.exclude([])
            await client.refresh_nodes()


async def test_labels_of_nodes_are_replaced_and_read_back(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    async with backend.client() as client, backend.fleet(1) as fleet:
        (node,) = fleet.nodes
        with pytest.raises(errors.RemoteCallError, match="label"):
            await client.replace_labels_on_nodes({node.node_id: ["no-such-label"]})
        await make_label(backend)
        await client.replace_labels_on_nodes({node.node_id: [LABEL]})
        assert (await client.get_nodes_to_labels())[node.node_id] == (LABEL,)
        await client.replace_labels_on_nodes({node.node_id: []})
        assert node.node_id not in await client.get_nodes_to_labels()


async def test_labels_and_attributes_of_unknown_nodes_are_refused(rm_operations: RmOperations) -> None:
    async with rm_operations.backend.client() as client:
        await make_label(rm_operations.backend)
        with pytest.raises(errors.RemoteCallError):
            await client.replace_labels_on_nodes({NodeId("never-seen", 8041): [LABEL]})
        with pytest.raises(errors.RemoteCallError):
            await client.map_attributes_to_nodes(
                AttributeOperation.REPLACE, {"never-seen": [NodeAttribute("zone", "a")]}
            )


async def test_attributes_are_added_replaced_and_removed(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    async with backend.client() as client, backend.fleet(1) as fleet:
        host = fleet.nodes[0].node_id.host
        steps: tuple[tuple[AttributeOperation, str, dict[str, str]], ...] = (
            (AttributeOperation.ADD, "a", {"zone": "a"}),
            (AttributeOperation.ADD, "b", {"zone": "a"}),  # accepted, and not done
            (AttributeOperation.REPLACE, "c", {"zone": "c"}),
            (AttributeOperation.REMOVE, "c", {}),
        )
        for operation, value, expected in steps:
            await client.map_attributes_to_nodes(operation, {host: [NodeAttribute("zone", value)]})
            held = (await client.get_nodes_to_attributes()).get(host, ())
            assert {each.name: each.value for each in held if each.prefix == "rm.yarn.io"} == expected


async def test_only_administrators_operate(rm_operations: RmOperations) -> None:
    backend = rm_operations.backend
    async with backend.client("bob") as client:
        calls = (
            client.refresh_nodes(),
            client.check_for_decommissioning_nodes(),
            client.replace_labels_on_nodes({backend.busy_node: []}),
            client.map_attributes_to_nodes(AttributeOperation.REPLACE, {}),
        )
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [errors.AccessDeniedError] * 4


async def is_in(client: ResourceManagerClient, node_id: NodeId, state: NodeState) -> bool:
    """Tell whether a node is listed in a state."""
    report = (await reports(client)).get(node_id)
    return report is not None and report.state is state
