# SPDX-License-Identifier: Apache-2.0
"""Say what the product relies on in a ResourceManager, as far as it needs no containers.

Import the functions into a test module that gives `rm_backend`. The nodes are played by `lab.fleet`.
"""

from __future__ import annotations

import asyncio

import pytest

from lab.fleet import Fleet
from tests.contract.hadoop.backend import (
    GPU,
    HEARTBEAT_SECONDS,
    MINIMUM_MEMORY_MIB,
    RmBackend,
    change,
    done,
    reports,
    until,
)
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import (
    FAR_OVERCOMMIT_TIMEOUT_MILLIS,
    NodeId,
    NodeResourceUpdate,
    NodeState,
    QueueInfo,
    Resource,
    ResourceInformation,
)
from yarn_copilot.hadoop.protocols import administration, application_client

FAR = FAR_OVERCOMMIT_TIMEOUT_MILLIS
TWO_GPUS = (ResourceInformation(GPU, 2, ""),)
NO_GPU = (ResourceInformation(GPU, 0, ""),)


async def assert_stays_unknown(client: ResourceManagerClient, node_id: NodeId, neighbour: NodeId) -> None:
    """Check that a batch with `node_id` is refused whole, so that `neighbour` keeps its capacity."""
    before = (await reports(client))[neighbour].capability
    batch = [NodeResourceUpdate(neighbour, Resource(1024, 1)), NodeResourceUpdate(node_id, Resource(1024, 1))]
    with pytest.raises(errors.UnrecognizedNodeError) as caught:
        await client.update_node_resource(batch)
    assert caught.value.node_id == node_id
    await asyncio.sleep(2 * HEARTBEAT_SECONDS)
    assert (await reports(client))[neighbour].capability == before


async def wait_for_state(client: ResourceManagerClient, node_id: NodeId, state: NodeState) -> None:
    """Wait until the list shows a state."""

    async def is_shown() -> bool:
        report = (await reports(client)).get(node_id)
        return report is not None and report.state is state

    await until(is_shown)


def paths(queue: QueueInfo) -> list[str]:
    """List a queue's path and those below it."""
    return [queue.path, *(path for child in queue.children for path in paths(child))]


async def test_registered_nodes_are_listed_running_and_unused(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(3) as fleet:
        listed = await reports(client)
        for node in fleet.nodes:
            report = listed[node.node_id]
            assert report.state is NodeState.RUNNING
            assert report.http_address == f"{node.node_id.host}:8042"
            assert report.rack == "/default-rack"
            assert report.capability == Resource(8192, 8, TWO_GPUS)
            assert (report.used.memory_mib, report.used.vcores, report.containers) == (0, 0, 0)


async def test_metrics_count_the_nodes(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(3):

        async def is_counted() -> bool:
            # Nodes of an earlier test may be on their way to LOST between the two reads.
            running = sum(one.state is NodeState.RUNNING for one in await client.get_cluster_nodes())
            return running >= 4 and (await client.get_cluster_metrics()).active == running

        await until(is_counted)


async def test_queues_come_as_a_tree_with_paths(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client:
        root = await client.get_queue_info("root")
    assert sorted(paths(root)) == [
        "root",
        "root.batch",
        "root.batch.adhoc",
        "root.batch.etl",
        "root.interactive",
    ]
    assert root.state == "RUNNING"
    assert {child.name: round(child.capacity, 3) for child in root.children} == {"batch": 0.6, "interactive": 0.4}


@pytest.mark.parametrize("queue", ["root.batch.etl", "etl"])
async def test_leaf_queue_is_found_by_path_and_by_name(rm_backend: RmBackend, queue: str) -> None:
    async with rm_backend.client() as client:
        leaf = await client.get_queue_info(queue)
    path = "root.batch.etl" if rm_backend.behaviour.tells_queue_paths else queue
    assert (leaf.name, leaf.path, leaf.children) == ("etl", path, ())


async def test_unknown_queue_is_an_error(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client:
        with pytest.raises(errors.RemoteCallError, match="nope"):
            await client.get_queue_info("nope")


async def test_update_is_shown_and_told_to_the_node_manager(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(2) as fleet:
        changed, other = fleet.nodes
        await change(client, changed.node_id, Resource(2048, 3, TWO_GPUS), timeout_millis=FAR)
        await until(lambda: done(changed.adoptions > 0))
        await asyncio.sleep(3 * HEARTBEAT_SECONDS)
        assert (changed.resource, changed.adoptions) == (Resource(2048, 3, TWO_GPUS), 1)
        assert other.adoptions == 0


async def test_one_batch_changes_many_nodes(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(50) as fleet:
        wanted = {node.node_id: Resource(1000 + index, 2, TWO_GPUS) for index, node in enumerate(fleet.nodes)}
        await client.update_node_resource([NodeResourceUpdate(*item) for item in wanted.items()])

        async def are_shown() -> bool:
            listed = await reports(client)
            return all(listed[node_id].capability == resource for node_id, resource in wanted.items())

        await until(are_shown)


async def test_custom_types_that_an_update_leaves_out_become_zero(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(1) as fleet:
        node_id = fleet.nodes[0].node_id
        await change(client, node_id, Resource(2048, 2, TWO_GPUS), timeout_millis=FAR)
        assert (await reports(client))[node_id].capability.custom == TWO_GPUS
        await change(client, node_id, Resource(2049, 2), timeout_millis=FAR)
        assert (await reports(client))[node_id].capability.custom == NO_GPU


async def test_node_never_seen_fails_its_batch(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(1) as fleet:
        await assert_stays_unknown(client, NodeId("never-seen", 8041), fleet.nodes[0].node_id)


async def test_lost_node_fails_its_batch_and_keeps_its_updated_capacity_when_it_reports_again(
    rm_backend: RmBackend,
) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(2) as fleet:
        node, other = fleet.nodes
        await change(client, node.node_id, Resource(3000, 3, TWO_GPUS), timeout_millis=FAR)
        await until(lambda: done(node.adoptions > 0))
        node.is_silent = True
        await wait_for_state(client, node.node_id, NodeState.LOST)
        await assert_stays_unknown(client, node.node_id, other.node_id)
        node.is_silent = False
        await wait_for_state(client, node.node_id, NodeState.RUNNING)
        assert (await reports(client))[node.node_id].capability == Resource(3000, 3, TWO_GPUS)
        assert fleet.statistics.resyncs == 1


async def test_node_manager_that_stopped_is_shutdown_and_fails_its_batch(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(2) as fleet:
        stopped, other = fleet.nodes
        fleet.unregister_node(stopped)
        await wait_for_state(client, stopped.node_id, NodeState.SHUTDOWN)
        await assert_stays_unknown(client, stopped.node_id, other.node_id)


async def test_node_manager_restart_brings_the_configured_capacity_back(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, rm_backend.fleet(1) as fleet:
        (node,) = fleet.nodes
        await change(client, node.node_id, Resource(3000, 3, TWO_GPUS), timeout_millis=FAR)
        await until(lambda: done(node.adoptions > 0))
        fleet.restart_node(node)
        await fleet.wait_registered()

        async def is_back() -> bool:
            return (await reports(client))[node.node_id].capability == Resource(8192, 8, TWO_GPUS)

        await until(is_back)


async def test_resource_manager_restart_brings_back_what_each_node_manager_has_adopted(rm_backend: RmBackend) -> None:
    full, less = Resource(8192, 8, TWO_GPUS), Resource(3000, 3, TWO_GPUS)
    async with rm_backend.client() as client, rm_backend.fleet(4) as fleet:
        told, untold, below_minimum, unchanged = fleet.nodes
        await change(client, told.node_id, less, timeout_millis=FAR)
        await change(client, below_minimum.node_id, Resource(0, 0, TWO_GPUS), timeout_millis=FAR)
        await until(lambda: done(told.adoptions > 0 and below_minimum.adoptions > 0))
        untold.is_silent = True
        await asyncio.sleep(HEARTBEAT_SECONDS)  # a report that is on its way would be told
        await change(client, untold.node_id, less, timeout_millis=FAR)
        await rm_backend.restart()
        untold.is_silent = False
        await until(lambda: done(below_minimum.shutdown_diagnostics is not None))
        await wait_until_back(client, fleet)
        listed = await reports(client)
        shown = {node: listed[node.node_id].capability for node in fleet.nodes if node.node_id in listed}
        # The lower total of the one that was not told is gone: all it had may be used again.
        assert shown == {told: less, untold: full, unchanged: full}


async def wait_until_back(client: ResourceManagerClient, fleet: Fleet) -> None:
    """Wait until every node of the fleet is RUNNING at a ResourceManager that was restarted."""

    async def are_running() -> bool:
        try:
            listed = await reports(client)
        except errors.ConnectError:
            return False
        return all(
            node.node_id in listed and listed[node.node_id].state is NodeState.RUNNING
            for node in fleet.nodes
            if node.shutdown_diagnostics is None
        )

    await until(are_running)


async def test_registration_below_the_minimum_is_sent_away(rm_backend: RmBackend) -> None:
    async with rm_backend.fleet(1, memory_mib=MINIMUM_MEMORY_MIB - 1) as fleet:
        assert "minimum allocation" in (fleet.nodes[0].shutdown_diagnostics or "")


async def test_only_administrators_change_nodes(rm_backend: RmBackend) -> None:
    async with rm_backend.client("bob") as client, rm_backend.fleet(1) as fleet:
        assert fleet.nodes[0].node_id in await reports(client)
        with pytest.raises(errors.AccessDeniedError, match="bob"):
            await client.update_node_resource([NodeResourceUpdate(fleet.nodes[0].node_id, Resource(1024, 1))])


async def test_unknown_method_and_protocol_are_told_apart_from_failures(rm_backend: RmBackend) -> None:
    options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=10, max_response_bytes=1_000_000)
    address = rm_backend.cluster.client_addresses[0]
    for protocol, method in (
        (application_client.PROTOCOL, "noSuchMethod"),
        (administration.PROTOCOL, administration.UPDATE_NODE_RESOURCE),
    ):
        link = await connection.open_connection(address, protocol=protocol, options=options)
        with pytest.raises(errors.UnsupportedCallError):
            await link.call(method, b"", timeout_seconds=10)
        await link.aclose()


async def test_many_calls_in_flight_each_get_their_own_answer(rm_backend: RmBackend) -> None:
    queues = ["root", "root.batch", "root.batch.etl", "root.batch.adhoc", "root.interactive"] * 20
    async with rm_backend.client() as client:
        answers = await asyncio.gather(*(client.get_queue_info(queue) for queue in queues))
    assert [answer.path for answer in answers] == queues
