# SPDX-License-Identifier: Apache-2.0
"""A real Federation Router in place of a ResourceManager is read, changes nothing, and is refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lab.fleet import Fleet, FleetOptions
from lab.hadoop.router import FederatedYarn
from tests.contract.hadoop.backend import fresh_node_id, until
from yarn_copilot.cli import clusters
from yarn_copilot.cli.doctor.command import examine
from yarn_copilot.cli.doctor.findings import Check, Severity
from yarn_copilot.config.settings import HadoopSettings, Settings, Transport
from yarn_copilot.hadoop import configuration, connection, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.protocols import ha_service
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader

pytestmark = pytest.mark.lab

FULL = Resource(4096, 4)
LESS = Resource(2048, 2)


@pytest.fixture(scope="module")
def federation() -> Iterator[FederatedYarn]:
    """Run a Router in front of one sub-cluster."""
    with FederatedYarn() as federation:
        yield federation


async def test_router_lists_nodes_and_refuses_to_change_them_which_their_own_resource_manager_does(
    federation: FederatedYarn,
) -> None:
    node_id = fresh_node_id()
    update = [NodeResourceUpdate(node_id, LESS)]
    options = FleetOptions(resource=FULL, heartbeat_seconds=0.2)
    through, direct = client_of(federation.conf_dir), client_of(federation.yarn.conf_dir)
    async with through, direct, Fleet(federation.yarn.tracker_address, [node_id], options=options):

        async def is_listed() -> bool:
            # The Router asks the sub-clusters that its state store names, and reads that store now and then.
            try:
                return node_id in {report.node_id for report in await through.get_cluster_nodes()}
            except errors.RemoteCallError:
                return False

        await until(is_listed, seconds=120)
        for call in (through.update_node_resource(update), through.check_for_decommissioning_nodes()):
            with pytest.raises(errors.FederationRouterError, match="sub-cluster's own ResourceManagers") as caught:
                await call
            assert not caught.value.may_have_been_applied
        assert await capacity(direct, node_id) == FULL
        await direct.update_node_resource(update)

        async def is_changed() -> bool:
            return await capacity(direct, node_id) == LESS

        await until(is_changed)


async def test_router_is_read_over_rest_where_its_demand_is_unknown_and_updates_are_refused(
    federation: FederatedYarn,
) -> None:
    node_id = fresh_node_id()
    cluster = configuration.read_clusters(federation.conf_dir)["default"]
    hadoop = HadoopSettings(conf_dir=federation.conf_dir, user="yarn", call_timeout_seconds=20)
    through, direct = (
        RestResourceManagerClient(clusters.web_transport(cluster, hadoop)),
        client_of(federation.yarn.conf_dir),
    )
    options = FleetOptions(resource=FULL, heartbeat_seconds=0.2)
    async with through, direct, Fleet(federation.yarn.tracker_address, [node_id], options=options):

        async def is_listed() -> bool:
            try:
                return node_id in {report.node_id for report in await through.get_cluster_nodes()}
            except errors.HadoopRPCError:
                return False

        await until(is_listed, seconds=120)
        assert await PartitionDemandReader(through).read() is None
        update = through.update_node_resource([NodeResourceUpdate(node_id, LESS)])
        for call in (through.get_version(), through.get_queue_info("root"), through.get_partition_use(), update):
            with pytest.raises(errors.FederationRouterError, match="sub-cluster's own ResourceManagers"):
                await call
        assert await capacity(direct, node_id) == FULL


async def test_router_has_no_service_that_tells_active_from_standby(federation: FederatedYarn) -> None:
    (address,) = configuration.read_clusters(federation.conf_dir)["default"].admin_addresses
    options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=10, max_response_bytes=1_000_000)
    link = await connection.open_connection(address, protocol=ha_service.PROTOCOL, options=options)
    with pytest.raises(errors.UnsupportedCallError, match="HAServiceProtocol"):
        await link.call(ha_service.GET_SERVICE_STATUS, b"", timeout_seconds=10)
    await link.aclose()


@pytest.mark.parametrize("transport", list(Transport))
async def test_doctor_says_what_to_do_about_a_router(federation: FederatedYarn, transport: Transport) -> None:
    hadoop = {"conf_dir": str(federation.conf_dir), "user": "yarn", "transport": transport.value}
    settings = Settings.model_validate({"hadoop": hadoop})
    findings = await examine(settings, {}, with_kubernetes=False, progress=lambda text: None, resolve=resolves)
    (found,) = [finding for finding in findings if finding.check is Check.PORT]
    assert "Federation Router" in found.found
    assert (found.check, found.severity) == (Check.PORT, Severity.ERROR)
    assert "<id>.yarn-site.xml" in found.fix


async def resolves(_host: str) -> bool:
    """Say that every name can be resolved."""
    return True


def client_of(conf_dir: Any) -> ResourceManagerClient:
    """Give the product's client."""
    cluster = configuration.read_clusters(conf_dir)["default"]
    return ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=20)


async def capacity(client: ResourceManagerClient, node_id: NodeId) -> Resource:
    """Read the total of a node."""
    return {report.node_id: report.capability for report in await client.get_cluster_nodes()}[node_id]
