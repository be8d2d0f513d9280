# SPDX-License-Identifier: Apache-2.0
"""Show that updates reach the active ResourceManager of a pair, soon, once, and never two of them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, faults
from tests.contract.hadoop.backend import settled
from tests.contract.hadoop.pairs import NODE, activate, cluster_of, pair, swap
from yarn_copilot.hadoop import errors, failover, searching, succession
from yarn_copilot.hadoop.active import ActiveOne
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.client import ADMIN_PROBE, ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses
from yarn_copilot.hadoop.connection import Connection, ConnectionOptions, open_connection
from yarn_copilot.hadoop.model import HAServiceState, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.protocols import administration

UPDATE = [NodeResourceUpdate(NODE, Resource(2048, 2))]
WRITE = "updateNodeResource"
PROBE = "checkForDecommissioningNodes"
READ_PROBE = "getClusterMetrics"
SOON_SECONDS = 10.0
"""Ten times the aim of one second."""


@asynccontextmanager
async def client_of(
    cluster: ClusterConfiguration, *, seconds: float = 20.0, connect_seconds: float = 5.0, user: str = "yarn"
) -> AsyncIterator[ResourceManagerClient]:
    """Give a client; afterwards no task of it is left."""
    before = asyncio.all_tasks()
    client = ResourceManagerClient(
        cluster, user=user, call_timeout_seconds=seconds, connect_timeout_seconds=connect_seconds
    )
    async with client:
        yield client
    left = {task.get_name() for task in asyncio.all_tasks() - before if "hadoop" in task.get_name()}
    assert left == set()


def accepted(*managers: EmbeddedYarn) -> list[int]:
    """Count the updates that each ResourceManager accepted."""
    return [len(manager.updates) for manager in managers]


async def test_update_goes_to_the_second_when_the_first_stands_by() -> None:
    async with pair(active=(False, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        await client.update_node_resource(UPDATE)
        assert len(await client.get_cluster_nodes()) == 1
        assert accepted(rm1, rm2) == [0, 1]
        assert (rm1.calls[WRITE], rm2.calls[WRITE]) == (0, 1)


async def test_update_waits_while_both_stand_by_and_is_applied_soon_after_one_is_active() -> None:
    async with pair(active=(False, False)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        update = asyncio.create_task(client.update_node_resource(UPDATE))
        await settled(lambda: rm1.calls[PROBE] > 1 and rm2.calls[PROBE] > 1)
        assert not update.done()
        await activate(rm2)
        became_active = time.monotonic()
        await update
        assert time.monotonic() - became_active < SOON_SECONDS
        assert accepted(rm1, rm2) == [0, 1]


async def test_update_reaches_one_when_both_claim_to_be_active() -> None:
    async with pair(active=(True, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        for _ in range(5):
            await client.update_node_resource(UPDATE)
        assert sorted(accepted(rm1, rm2)) == [0, 5]


async def test_swap_of_roles_between_two_batches_of_one_connection_loses_and_doubles_nothing() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        await client.update_node_resource(UPDATE)
        await swap(rm1, rm2)
        await client.update_node_resource(UPDATE)
        await swap(rm2, rm1)
        await client.update_node_resource(UPDATE)
        assert accepted(rm1, rm2) == [2, 1]


async def test_many_swaps_leave_one_connection_for_each_protocol() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        active, other = rm1, rm2
        for _ in range(10):
            await client.update_node_resource(UPDATE)
            await client.get_cluster_nodes()
            await swap(active, other)
            active, other = other, active
        await client.update_node_resource(UPDATE)
        await client.get_cluster_nodes()
        await settled(lambda: active.admin_port.open_connections == active.client_port.open_connections == 1)
        await settled(lambda: not other.admin_port.open_connections and not other.client_port.open_connections)
        assert sum(accepted(rm1, rm2)) == 11


async def test_swap_while_updates_are_in_flight_applies_each_once() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        await client.update_node_resource(UPDATE)
        rm1.is_active = False
        updates = [asyncio.create_task(client.update_node_resource(UPDATE)) for _ in range(10)]
        await settled(lambda: rm1.calls[WRITE] > 1)
        await swap(rm1, rm2)
        await asyncio.gather(*updates)
        assert accepted(rm1, rm2) == [1, 10]


async def test_update_whose_connection_was_cut_is_told_and_not_sent_to_the_other() -> None:
    async with pair(active=(True, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        await client.check_for_decommissioning_nodes()
        chosen = rm1 if rm1.admin_port.open_connections else rm2
        chosen.faults.add(faults.cut_after(3), method=WRITE)
        with pytest.raises(errors.ConnectionLostError) as caught:
            await client.update_node_resource(UPDATE)
        assert caught.value.may_have_been_applied
        assert sum(accepted(rm1, rm2)) == 1


async def test_read_moves_on_when_the_active_one_dies() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        assert len(await client.get_cluster_nodes()) == 1
        await rm1.stop_rm()
        read = asyncio.create_task(client.get_cluster_nodes())
        await asyncio.sleep(0)
        await activate(rm2)
        assert len(await read) == 1


@asynccontextmanager
async def silent_server() -> AsyncIterator[Address]:
    """Accept connections and never say anything, as a frozen process does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield Address(*listener.getsockname())


@asynccontextmanager
async def unanswered_address() -> AsyncIterator[Address]:
    """Give an address whose connects hang: the listener's queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield Address(*listener.getsockname())
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("make", [silent_server, unanswered_address])
async def test_silent_one_costs_the_other_nothing(make: Any) -> None:
    async with pair() as (rm1, _rm2), make() as silent:
        good = cluster_of(rm1).resource_managers[0]
        dead = ResourceManagerAddresses(rm_id="dead", client=silent, admin=silent)
        cluster = ClusterConfiguration(id="c", resource_managers=(dead, good))
        async with client_of(cluster, seconds=30, connect_seconds=20) as client:
            began = time.monotonic()
            await client.update_node_resource(UPDATE)
            assert len(await client.get_cluster_nodes()) == 1
            assert time.monotonic() - began < SOON_SECONDS
        assert accepted(rm1) == [1]


async def test_read_leaves_a_server_that_fell_silent_for_the_other() -> None:
    async with pair(active=(True, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=2.0) as client:
        await client.get_cluster_nodes()
        chosen, other = (rm1, rm2) if rm1.client_port.open_connections else (rm2, rm1)
        chosen.faults.add(faults.silent(), times=None)
        assert len(await client.get_cluster_nodes()) == 1
        assert other.calls["getClusterNodes"] >= 1


async def test_update_is_not_kept_waiting_by_a_silent_server_when_another_has_taken_over() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=600) as client:
        await client.update_node_resource(UPDATE)
        rm1.faults.add(faults.silent(is_executed=False), times=None)
        update = asyncio.create_task(client.update_node_resource(UPDATE))
        await settled(lambda: rm1.calls[PROBE] > 1 and rm2.calls[PROBE] > 1)
        assert not update.done()
        await activate(rm2)
        became_active = time.monotonic()
        with pytest.raises(errors.CallTimeoutError, match="is the active one now") as caught:
            await update
        assert caught.value.may_have_been_applied
        await client.update_node_resource(UPDATE)
        assert time.monotonic() - became_active < SOON_SECONDS
        assert accepted(rm1, rm2) == [1, 1]
        assert rm2.calls[WRITE] == 1


async def test_read_in_flight_at_a_silent_server_is_answered_by_the_one_that_takes_over() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=600) as client:
        await client.get_cluster_nodes()
        rm1.faults.add(faults.silent(), times=None)
        reads = [asyncio.create_task(client.get_cluster_nodes()) for _ in range(3)]
        # One probe when the connection was made, and one for each read; a standby listens on no port for reads.
        await settled(lambda: rm1.calls[READ_PROBE] == 1 + len(reads))
        await activate(rm2)
        assert [len(await read) for read in reads] == [1, 1, 1]
        assert rm2.calls["getClusterNodes"] == 3


async def test_read_back_after_an_update_at_a_silent_server_goes_to_the_one_that_took_over() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=600) as client:
        await client.get_cluster_nodes()
        await client.update_node_resource(UPDATE)
        rm1.faults.add(faults.silent(is_executed=False), times=None)
        update = asyncio.create_task(client.update_node_resource(UPDATE))
        await settled(lambda: rm1.calls[WRITE] == 2)
        await activate(rm2)
        with pytest.raises(errors.CallTimeoutError, match="read what is in force there before it is sent again"):
            await update
        before = rm1.calls.copy()
        assert len(await client.get_cluster_nodes()) == 1
        assert rm2.calls["getClusterNodes"] == 1
        assert (rm1.calls["getClusterNodes"], rm1.calls[READ_PROBE]) == (before["getClusterNodes"], before[READ_PROBE])


async def test_update_after_a_read_at_a_silent_server_goes_to_the_one_that_took_over() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=600) as client:
        await client.update_node_resource(UPDATE)
        await client.get_cluster_nodes()
        rm1.faults.add(faults.silent(is_executed=False), times=None)
        read = asyncio.create_task(client.get_cluster_nodes())
        await settled(lambda: rm1.calls["getClusterNodes"] == 2)
        await activate(rm2)
        await read
        await client.update_node_resource(UPDATE)
        assert accepted(rm1, rm2) == [1, 1]
        assert rm1.calls[WRITE] == 1


def admin_caller(active: ActiveOne, *managers: EmbeddedYarn) -> failover.FailoverCaller:
    """Give a caller of the admin ports that shares what it knows."""
    options = ConnectionOptions(user="yarn", connect_timeout_seconds=5, max_response_bytes=1_000_000)

    async def connect(address: Address) -> Connection:
        return await open_connection(address, protocol=administration.PROTOCOL, options=options)

    addresses = cluster_of(*managers).admin_addresses
    return failover.FailoverCaller(addresses, connect=connect, clock=time, probe=ADMIN_PROBE, active=active)


# One that finds out by itself that its server is silent has used up this time when it does.
ALONE_SECONDS = succession.PATIENCE_SECONDS + searching.PROBE_TIMEOUT_SECONDS


async def test_update_in_flight_at_a_silent_server_is_given_up_when_another_caller_knows_the_active_one() -> None:
    async with pair(active=(True, True)) as (rm1, rm2):
        active = ActiveOne()
        caller = admin_caller(active, rm1, rm2)
        await caller.call(*ADMIN_PROBE, timeout_seconds=20, is_read=True)
        silent = (rm1, rm2)[active.index]
        silent.faults.add(faults.silent(is_executed=False), times=None)
        request = administration.encode_update_node_resource(UPDATE)
        update = asyncio.create_task(caller.call(WRITE, request, timeout_seconds=ALONE_SECONDS, is_read=False))
        await settled(lambda: silent.calls[WRITE] == 1)
        active.found(1 - active.index)
        with pytest.raises(errors.CallTimeoutError, match="is the active one now"):
            await update
        await caller.aclose()
        assert accepted(rm1, rm2) == [0, 0]


async def test_update_in_flight_at_a_slow_server_is_waited_for_although_another_caller_went_elsewhere() -> None:
    async with pair(active=(True, True)) as (rm1, rm2):
        active = ActiveOne()
        caller = admin_caller(active, rm1, rm2)
        await caller.call(*ADMIN_PROBE, timeout_seconds=20, is_read=True)
        slow, other = (rm1, rm2) if active.index == 0 else (rm2, rm1)
        slow.faults.add(faults.slow(1.0), method=WRITE)
        request = administration.encode_update_node_resource(UPDATE)
        update = asyncio.create_task(caller.call(WRITE, request, timeout_seconds=60, is_read=False))
        await settled(lambda: slow.calls[WRITE] == 1)
        active.found(1 - active.index)
        await update
        await caller.aclose()
        assert accepted(slow, other) == [1, 0]


async def test_slow_update_is_waited_for_although_another_claims_to_be_active() -> None:
    async with pair(active=(True, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2), seconds=60) as client:
        await client.update_node_resource(UPDATE)
        chosen, other = (rm1, rm2) if accepted(rm1, rm2) == [1, 0] else (rm2, rm1)
        probes = other.calls[PROBE]
        chosen.faults.add(faults.slow(2.5), method=WRITE)
        await client.update_node_resource(UPDATE)
        assert accepted(chosen, other) == [2, 0]
        assert other.calls[PROBE] == probes


async def test_none_active_names_what_each_said() -> None:
    async with pair(active=(False, False)) as (rm1, rm2):
        await rm2.stop_rm()
        async with client_of(cluster_of(rm1, rm2), seconds=2.0) as client:
            with pytest.raises(errors.StandbyError) as caught:
                await client.update_node_resource(UPDATE)
        text = str(caught.value)
        assert "rm1 is not Active" in text
        assert "Connect call failed" in text


async def test_missing_permission_ends_the_search_at_once() -> None:
    async with pair(active=(False, True)) as (rm1, rm2):
        async with client_of(cluster_of(rm1, rm2), seconds=60, user="bob") as client:
            with pytest.raises(errors.AccessDeniedError, match="bob"):
                await client.update_node_resource(UPDATE)
        assert rm2.calls[WRITE] == 0


async def test_cancelled_search_leaves_nothing_open() -> None:
    async with pair(active=(False, False)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        update = asyncio.create_task(client.update_node_resource(UPDATE))
        await settled(lambda: rm1.calls[PROBE] and rm2.calls[PROBE])
        update.cancel()
        with pytest.raises(asyncio.CancelledError):
            await update
        await settled(lambda: not rm1.admin_port.open_connections and not rm2.admin_port.open_connections)


async def test_calls_that_wait_for_one_search_share_its_result() -> None:
    async with pair(active=(False, True)) as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        await asyncio.gather(*(client.update_node_resource(UPDATE) for _ in range(20)))
        assert accepted(rm2) == [20]
        assert rm2.admin_port.connections_accepted == 1


async def test_name_is_resolved_anew_for_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    target = "127.0.0.1"

    def moved(host: Any, *arguments: Any, **keywords: Any) -> Any:
        return resolve(target if host == "rm.test" else host, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", moved)
    quiet = EmbeddedYarnOptions(heartbeat_seconds=None)
    async with EmbeddedYarn(quiet) as old:
        moved_to = EmbeddedYarnOptions(heartbeat_seconds=None, host="127.0.0.2")
        new = EmbeddedYarn(moved_to)
        new.client_port.port, new.admin_port.port = old.client_port.port, old.admin_port.port
        async with new:
            named = ResourceManagerAddresses(
                rm_id="",
                client=Address("rm.test", old.client_port.port),
                admin=Address("rm.test", old.admin_port.port),
            )
            cluster = ClusterConfiguration(id="c", resource_managers=(named,))
            async with client_of(cluster) as client:
                await client.get_cluster_nodes()
                await old.stop_rm()
                target = "127.0.0.2"
                await client.get_cluster_nodes()
        assert (old.calls["getClusterNodes"], new.calls["getClusterNodes"]) == (1, 1)


async def test_service_status_tells_active_from_standby() -> None:
    async with pair() as (rm1, rm2), client_of(cluster_of(rm1, rm2)) as client:
        assert (await client.get_service_status("rm1")).state is HAServiceState.ACTIVE
        assert (await client.get_service_status("rm2")).state is HAServiceState.STANDBY
        with pytest.raises(ValueError, match="rm9"):
            await client.get_service_status("rm9")


async def test_federation_router_is_refused_with_the_reason() -> None:
    async with pair() as (rm1, _rm2), client_of(cluster_of(rm1)) as client:
        rm1.faults.add(
            faults.refusal(
                "org.apache.hadoop.yarn.exceptions.YarnException", "Missing UpdateNodeResource SubClusterId."
            )
        )
        with pytest.raises(errors.FederationRouterError, match="Federation Router"):
            await client.update_node_resource(UPDATE)
