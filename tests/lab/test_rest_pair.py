# SPDX-License-Identifier: Apache-2.0
"""Use a real pair of ResourceManagers over REST: one standby or two, and a swap of roles that the client follows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import aiohttp
import pytest

from lab.hadoop.pair import IDS, Pair
from tests.contract.hadoop.backend import until
from yarn_copilot.cli import clusters
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, read_clusters
from yarn_copilot.hadoop.model import HAServiceState, NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import Request

pytestmark = pytest.mark.lab

SECONDS = 20.0
NODES = "/ws/v1/cluster/nodes"
WITHOUT_RETRY = {"next.refresh.interval": "10"}
"""What a browser asks with after some tries in vain: a standby that knows no active one then answers 200."""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Run a pair whose roles are changed by hand, and one NodeManager."""
    with Pair(zookeeper=False) as pair:
        yield pair


def settings_of(pair: Pair) -> HadoopSettings:
    """Give what an operator writes."""
    return HadoopSettings(
        conf_dir=pair.conf_dir, transport=Transport.REST, call_timeout_seconds=SECONDS, connect_timeout_seconds=SECONDS
    )


def make_active(pair: Pair, rm_id: str) -> None:
    """Swap the roles so that this one is active."""
    for other in IDS:
        if other != rm_id and pair.state_of(other) is HAServiceState.ACTIVE:
            pair.make_standby(other)
    if pair.state_of(rm_id) is not HAServiceState.ACTIVE:
        pair.make_active(rm_id)


def client_of(pair: Pair) -> tuple[RestResourceManagerClient, ClusterConfiguration]:
    """Give the product's client, made as `run` makes it."""
    (cluster,) = read_clusters(pair.conf_dir).values()
    return RestResourceManagerClient(clusters.web_transport(cluster, settings_of(pair))), cluster


async def raw_answer(address: Address, parameters: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Ask without the product; redirects are not followed."""
    url = f"http://{address}{NODES}"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=parameters, allow_redirects=False) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_standby_redirects_and_the_update_reaches_the_active_one(pair: Pair) -> None:
    node_id = NodeId.parse(pair.node_managers[0].node_id)
    for number, rm_id in enumerate(("rm2", "rm1")):
        await asyncio.to_thread(make_active, pair, rm_id)
        client, cluster = client_of(pair)
        standby = next(one.web for one in cluster.resource_managers if one.rm_id != rm_id)
        assert standby is not None
        status, text = await raw_answer(standby)
        assert (status, "This is standby RM" in text) == (307, True)
        async with client:

            async def is_listed(client: RestResourceManagerClient = client) -> bool:
                return any(one.node_id == node_id and one.state.is_active for one in await client.get_cluster_nodes())

            await until(is_listed)
            await client.update_node_resource([NodeResourceUpdate(node_id, Resource(2048 + number, 2))])

            async def is_shown(client: RestResourceManagerClient = client, number: int = number) -> bool:
                shown = {one.node_id: one.capability.memory_mib for one in await client.get_cluster_nodes()}
                return shown.get(node_id) == 2048 + number

            await until(is_shown)


async def test_a_client_follows_a_swap_of_roles(pair: Pair) -> None:
    await asyncio.to_thread(make_active, pair, "rm1")
    client, _cluster = client_of(pair)
    async with client:
        assert (await client.get_cluster_metrics()).node_managers >= 0
        await asyncio.to_thread(make_active, pair, "rm2")
        assert (await client.get_cluster_metrics()).node_managers >= 0


async def test_two_standbys_are_told_as_that_by_status_and_by_words_alone(pair: Pair) -> None:
    active = await asyncio.to_thread(pair.active)
    client, cluster = client_of(pair)
    transport = clusters.web_transport(cluster, settings_of(pair))
    await asyncio.to_thread(pair.make_standby, active)
    try:
        for address in cluster.web_addresses:
            status, text = await raw_answer(address)
            assert (status, "Can not find any active RM" in text) == (307, True)
            status, text = await raw_answer(address, WITHOUT_RETRY)
            assert (status, "There is no active RM" in text) == (200, True)
        async with client:
            for read in (client.get_cluster_nodes, client.get_cluster_metrics, client.get_partition_use):
                with pytest.raises(errors.StandbyError, match="Can not find any active RM"):
                    await read()
            with pytest.raises(errors.StandbyError):
                await client.update_node_resource([NodeResourceUpdate(NodeId("nm", 8041), Resource(2048, 2))])
        with pytest.raises(errors.StandbyError, match="There is no active RM"):
            await transport.call(Request(method="GET", path=NODES, parameters=WITHOUT_RETRY))
    finally:
        await transport.aclose()
        await asyncio.to_thread(pair.make_active, active)
