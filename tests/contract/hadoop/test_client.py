# SPDX-License-Identifier: Apache-2.0
"""Test how the client finds the ResourceManager that answers, and when it sends a call again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, faults, wire
from tests.contract.hadoop.backend import settled
from yarn_copilot.hadoop import connection, errors, failover
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource

NODE = NodeId("nm-0", 8041)
UPDATE = [NodeResourceUpdate(NODE, Resource(2048, 2))]
READ = "getClusterNodes"
WRITE = "updateNodeResource"


class HandClock:
    """Give seconds that a test moves by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    """Run a ResourceManager with one node."""
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as started:
        started.add_node(NODE.host)
        yield started


@pytest.fixture
async def other() -> AsyncIterator[EmbeddedYarn]:
    """Run a second ResourceManager with the same node."""
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as started:
        started.add_node(NODE.host)
        yield started


def cluster_of(*managers: EmbeddedYarn) -> ClusterConfiguration:
    """Describe ResourceManagers as one cluster."""
    return ClusterConfiguration(
        id="c",
        resource_managers=tuple(
            ResourceManagerAddresses(
                rm_id=f"rm{number}",
                client=Address("127.0.0.1", manager.client_port.port),
                admin=Address("127.0.0.1", manager.admin_port.port),
            )
            for number, manager in enumerate(managers, start=1)
        ),
    )


@asynccontextmanager
async def client_of(*managers: EmbeddedYarn, seconds: float = 10.0) -> AsyncIterator[ResourceManagerClient]:
    """Give a client; afterwards no connection is open."""
    tasks_before = asyncio.all_tasks()
    async with ResourceManagerClient(cluster_of(*managers), user="yarn", call_timeout_seconds=seconds) as client:
        yield client
    readers = [task.get_name() for task in asyncio.all_tasks() - tasks_before if "reader" in task.get_name()]
    assert readers == []


async def test_calls_share_one_connection_for_each_protocol(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await asyncio.gather(*(client.get_cluster_nodes() for _ in range(20)))
        await asyncio.gather(*(client.update_node_resource(UPDATE) for _ in range(20)))
        await client.get_cluster_metrics()
    assert (yarn.client_port.connections_accepted, yarn.admin_port.connections_accepted) == (1, 1)
    assert yarn.calls == {READ: 20, WRITE: 20, "getClusterMetrics": 1}


async def test_user_is_sent(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.update_node_resource(UPDATE)
    assert [recorded.user for recorded in yarn.updates] == ["yarn"]


async def test_empty_batch_sends_nothing(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.update_node_resource([])
    assert yarn.calls == {}


async def test_connection_closed_while_idle_is_opened_again_by_the_next_call(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.update_node_resource(UPDATE)
        yarn.admin_port.close_connections()
        await settled(lambda: not yarn.admin_port.open_connections)
        await asyncio.sleep(0.01)
        await client.update_node_resource(UPDATE)
    assert yarn.admin_port.connections_accepted == 2
    assert yarn.calls[WRITE] == 2


async def test_read_that_lost_its_connection_is_sent_again(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.cut_after(3))
    async with client_of(yarn) as client:
        assert len(await client.get_cluster_nodes()) == 1
    assert yarn.calls[READ] == 2


async def test_update_that_lost_its_connection_is_not_sent_again(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.cut_after(3))
    async with client_of(yarn) as client:
        with pytest.raises(errors.ConnectionLostError) as caught:
            await client.update_node_resource(UPDATE)
        assert caught.value.may_have_been_applied
        assert yarn.calls[WRITE] == 1
        await client.update_node_resource(UPDATE)
    assert yarn.calls[WRITE] == 2


async def test_standby_is_left_for_the_active_one_which_stays_the_choice(
    yarn: EmbeddedYarn, other: EmbeddedYarn
) -> None:
    yarn.faults.add(faults.standby("rm1"), times=None)
    async with client_of(yarn, other) as client:
        await client.update_node_resource(UPDATE)
        await client.update_node_resource(UPDATE)
    assert (yarn.calls[WRITE], other.calls[WRITE]) == (0, 2)
    assert (len(yarn.updates), len(other.updates)) == (0, 2)


async def test_all_on_standby_is_a_standby_error_and_no_update_is_sent(yarn: EmbeddedYarn, other: EmbeddedYarn) -> None:
    for manager in (yarn, other):
        manager.faults.add(faults.standby(), times=None)
    async with client_of(yarn, other, seconds=0.5) as client:
        with pytest.raises(errors.StandbyError, match="not Active") as caught:
            await client.update_node_resource(UPDATE)
    assert caught.value.retryable
    assert (yarn.calls[WRITE], other.calls[WRITE]) == (0, 0)


async def test_unreachable_address_is_left_for_the_next(yarn: EmbeddedYarn, other: EmbeddedYarn) -> None:
    async with client_of(yarn, other) as client:
        await yarn.stop_rm()
        assert len(await client.get_cluster_nodes()) == 1
        await client.update_node_resource(UPDATE)
    assert (other.calls[READ], other.calls[WRITE]) == (1, 1)


async def test_single_manager_that_is_down_is_a_connect_error_and_recovers(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.get_cluster_nodes()
        await yarn.stop_rm()
        with pytest.raises(errors.ConnectError):
            await client.get_cluster_nodes()
        with pytest.raises(errors.ConnectError):
            await client.update_node_resource(UPDATE)
        await yarn.start_rm()
        await client.get_cluster_nodes()


async def test_silence_costs_one_call_and_the_next_gets_a_new_connection(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent(), method=READ)
    async with client_of(yarn, seconds=0.2) as client:
        with pytest.raises(errors.CallTimeoutError):
            await client.get_cluster_nodes()
    async with client_of(yarn) as client:
        yarn.faults.add(faults.slow(0.3), method="getClusterMetrics")
        slow = asyncio.create_task(client.get_cluster_metrics())
        assert len(await client.get_cluster_nodes()) == 1
        assert (await slow).active == 1
    assert yarn.client_port.connections_accepted == 2


async def test_connection_that_timed_out_is_replaced(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn, seconds=0.5) as client:
        yarn.faults.add(faults.silent(), method=READ)
        with pytest.raises(errors.CallTimeoutError):
            await client.get_cluster_nodes()
        await client.get_cluster_nodes()
    assert yarn.client_port.connections_accepted == 2


async def test_closed_client_refuses_calls(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.get_cluster_nodes()
    with pytest.raises(errors.ClientClosedError):
        await client.get_cluster_nodes()


async def test_closing_fails_calls_in_flight(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent(), method=READ)
    async with client_of(yarn) as client:
        call = asyncio.create_task(client.get_cluster_nodes())
        await settled(lambda: yarn.calls[READ])
        await client.aclose()
        with pytest.raises(errors.ClientClosedError):
            await call


async def test_answer_that_does_not_decode_is_a_protocol_violation(yarn: EmbeddedYarn) -> None:
    def spoil(_frame: bytes, request: wire.Request) -> bytes:
        return wire.success(request, b"\x0a\xff")

    for _ in range(3):
        yarn.faults.add(faults.Fault(spoil=spoil))
    async with client_of(yarn) as client:
        for call in (client.get_cluster_nodes(), client.get_cluster_metrics(), client.get_queue_info("root")):
            with pytest.raises(errors.ProtocolViolationError, match="does not decode"):
                await call


async def test_unexpected_end_of_an_idle_connection_is_noticed_before_the_next_update(yarn: EmbeddedYarn) -> None:
    async with client_of(yarn) as client:
        await client.update_node_resource(UPDATE)
        await yarn.restart_rm()
        yarn.heartbeat()
        await asyncio.sleep(0.01)
        await client.update_node_resource(UPDATE)
    assert yarn.calls[WRITE] == 2


async def test_connect_that_hangs_costs_the_deadline() -> None:
    async def hang(_address: Address) -> connection.Connection:
        await asyncio.sleep(60)
        raise AssertionError

    caller = failover.FailoverCaller([Address("rm", 1)], connect=hang, clock=HandClock())
    with pytest.raises(errors.ConnectError, match="within the deadline"):
        await caller.call(READ, b"", timeout_seconds=0.05, is_read=False)
    await caller.aclose()


async def test_deadline_that_passes_while_connecting_sends_nothing(yarn: EmbeddedYarn) -> None:
    options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=5, max_response_bytes=1000)
    clock = HandClock()

    async def slow_connect(address: Address) -> connection.Connection:
        link = await connection.open_connection(address, protocol="p", options=options)
        clock.seconds += 10
        return link

    caller = failover.FailoverCaller(cluster_of(yarn).client_addresses, connect=slow_connect, clock=clock)
    with pytest.raises(errors.ConnectError, match="deadline passed"):
        await caller.call(READ, b"", timeout_seconds=5, is_read=False)
    await caller.aclose()
    assert yarn.calls == {}
