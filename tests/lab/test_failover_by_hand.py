# SPDX-License-Identifier: Apache-2.0
"""Let an administrator change the active one of two real ResourceManagers under load."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterable, Iterator

import pytest

from lab.hadoop.pair import IDS, Pair
from tests.contract.hadoop.backend import until
from tests.lab.failover_load import SOON_SECONDS, under_load
from yarn_copilot.hadoop import configuration, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import HAServiceState, NodeId, NodeResourceUpdate, NodeState, Resource

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def manual() -> Iterator[Pair]:
    """Run a pair that an administrator switches."""
    with Pair(zookeeper=False) as pair:
        yield pair


@pytest.fixture(autouse=True)
async def registered(manual: Pair) -> None:
    """Begin when the active one knows the NodeManager: the test before may have changed the roles."""
    cluster = configuration.read_clusters(manual.conf_dir)["default"]
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=20) as client:

        async def is_known() -> bool:
            return any(report.state is NodeState.RUNNING for report in await client.get_cluster_nodes())

        await until(is_known, seconds=60)


async def test_administrator_swaps_the_roles(manual: Pair) -> None:
    for old, new in (("rm1", "rm2"), ("rm2", "rm1")):
        await under_load(
            manual,
            [functools.partial(manual.make_standby, old), functools.partial(manual.make_active, new)],
            name=f"roles swapped by hand, {old} to {new}",
        )


async def test_status_and_both_on_standby(manual: Pair) -> None:
    active = await asyncio.to_thread(manual.active)
    other = next(rm_id for rm_id in IDS if rm_id != active)
    cluster = configuration.read_clusters(manual.conf_dir)["default"]
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=2) as client:
        assert (await client.get_service_status(active)).state is HAServiceState.ACTIVE
        assert (await client.get_service_status(other)).state is HAServiceState.STANDBY
        await asyncio.to_thread(manual.make_standby, active)
        try:
            with pytest.raises(errors.StandbyError, match="not Active"):
                await client.check_for_decommissioning_nodes()
        finally:
            await asyncio.to_thread(manual.make_active, active)
        await client.check_for_decommissioning_nodes()


async def test_both_claim_to_be_active_and_one_gets_the_updates(manual: Pair) -> None:
    active = await asyncio.to_thread(manual.active)
    other = next(rm_id for rm_id in IDS if rm_id != active)
    before = manual.accepted_updates()
    # Nothing fences the first one here; the NodeManager stays with it.
    await asyncio.to_thread(manual.make_active, other)
    try:
        await send(manual, range(3000, 3005))
    finally:
        await asyncio.to_thread(manual.make_standby, other)
    after = manual.accepted_updates()
    assert {rm_id: after[rm_id] - before[rm_id] for rm_id in IDS} == {active: 5, other: 0}


async def test_silent_one_on_standby_costs_nothing(manual: Pair) -> None:
    active = await asyncio.to_thread(manual.active)
    silent = manual.resource_managers[next(rm_id for rm_id in IDS if rm_id != active)]
    silent.pause()
    try:
        began = time.monotonic()
        await send(manual, range(3100, 3105))
        assert time.monotonic() - began < SOON_SECONDS
    finally:
        silent.resume()


async def send(pair: Pair, memories_mib: Iterable[int]) -> None:
    """Send updates one after another with a client that has no connection yet."""
    cluster = configuration.read_clusters(pair.conf_dir)["default"]
    node_id = NodeId.parse(pair.node_managers[0].node_id)
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=20) as client:
        for memory_mib in memories_mib:
            await client.update_node_resource([NodeResourceUpdate(node_id, Resource(memory_mib, 2))])
