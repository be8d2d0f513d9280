# SPDX-License-Identifier: Apache-2.0
"""REST against real ResourceManagers: the same picture as RPC, the same effect, the refusals; and doctor beside it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from lab.cluster import Lab
from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions
from lab.embedded.yarn.web_service import EmbeddedWebService
from lab.fleet import Fleet, FleetOptions
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.backend import until
from tests.contract.hadoop.suite_operations import LABEL, make_label
from tests.lab.hadoop_backend import RealBackend, SharedApplication, label_store
from yarn_copilot.cli.doctor.command import examine
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity
from yarn_copilot.config.settings import Settings
from yarn_copilot.hadoop import configuration, errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, QueueInfo, Resource, ResourceInformation
from yarn_copilot.hadoop.rest.authentication import WebIdentity
from yarn_copilot.hadoop.rest.client import CustomTypesError, RestResourceManagerClient
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader
from yarn_copilot.hadoop.rest.queues import find_queue
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport

GPU = "yarn.io/gpu"


def labelled(folder: Path) -> dict[str, str]:
    """Let applications of the queue interactive ask for containers in the partition LABEL."""
    queues = ("root", "root.batch", "root.interactive")
    return {
        **label_store(folder),
        "yarn.scheduler.capacity.root.accessible-node-labels": "*",
        "yarn.scheduler.capacity.root.interactive.default-node-label-expression": LABEL,
        **{
            f"yarn.scheduler.capacity.{queue}.accessible-node-labels.{LABEL}.capacity": share
            for queue, share in zip(queues, ("100", "0", "100"), strict=True)
        },
    }


@pytest.fixture(scope="module", params=["3.5.0", "3.4.3", "3.3.6"])
def yarn_lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Run a ResourceManager and one NodeManager that is known by its address."""
    options = YarnOptions(
        floor_memory_mib=4096,
        floor_vcores=4,
        nameless=(1,),
        properties={"yarn.resource-types": GPU, **labelled(tmp_path_factory.mktemp("labels"))},
    )
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


def rest_client(lab: Lab, port: int | None = None) -> RestResourceManagerClient:
    options = WebOptions(identity=WebIdentity(user="yarn"), call_timeout_seconds=20, connect_timeout_seconds=10)
    address = Address("127.0.0.1", port or lab.yarn.ports.web)
    return RestResourceManagerClient(WebTransport([address], options))


@pytest.fixture
async def rest(yarn_lab: Lab) -> AsyncIterator[RestResourceManagerClient]:
    async with rest_client(yarn_lab) as client:
        yield client


@pytest.fixture
async def rpc(yarn_lab: Lab) -> AsyncIterator[ResourceManagerClient]:
    cluster = configuration.read_clusters(yarn_lab.yarn.conf_dir)["default"]
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=20) as client:
        yield client


def busy_node(lab: Lab) -> NodeId:
    return NodeId.parse(lab.yarn.node_managers[0].node_id)


def flat(queue: QueueInfo) -> dict[str, tuple[Any, ...]]:
    """Give the figures of all queues that do not change from read to read."""
    own = (round(queue.capacity, 3), round(queue.maximum_capacity, 3), queue.state, queue.pending_containers)
    return {queue.name: own, **{name: figures for child in queue.children for name, figures in flat(child).items()}}


async def test_both_transports_show_the_same(
    yarn_lab: Lab, rest: RestResourceManagerClient, rpc: ResourceManagerClient
) -> None:
    application = yarn_lab.submit(queue="root.batch.etl")
    try:
        application.ask(count=3, memory_mib=512, vcores=1)
        application.wait_running(3)

        async def is_same() -> bool:
            over_rest = {one.node_id: one for one in await rest.get_cluster_nodes()}
            over_rpc = {one.node_id: one for one in await rpc.get_cluster_nodes()}
            assert over_rest.keys() == over_rpc.keys()
            return all(
                (one.state, one.http_address, one.rack, one.containers)
                == (other.state, other.http_address, other.rack, other.containers)
                and (one.capability, one.used.memory_mib, one.used.vcores)
                == (other.capability, other.used.memory_mib, other.used.vcores)
                for one, other in ((over_rest[id_], over_rpc[id_]) for id_ in over_rest)
            )

        await until(is_same)
        assert await rest.get_cluster_metrics() == await rpc.get_cluster_metrics()

        async def queues_are_same() -> bool:
            return flat(await rest.get_queue_info("root")) == flat(await rpc.get_queue_info("root"))

        await until(queues_are_same)
        (shown,) = await rest.get_applications()
        assert shown["queue"].endswith("etl")
        assert (await rest.get_partition_use())[""].used.memory_mib >= 3 * 512
    finally:
        application.stop()


async def test_an_update_takes_effect(
    yarn_lab: Lab, rest: RestResourceManagerClient, rpc: ResourceManagerClient
) -> None:
    node_id = busy_node(yarn_lab)
    for size in (Resource(2048, 2), Resource(4096, 4)):
        await rest.update_node_resource([NodeResourceUpdate(node_id, size)])

        async def is_shown(size: Resource = size) -> bool:
            shown = {one.node_id: one.capability for one in await rpc.get_cluster_nodes()}[node_id]
            return (shown.memory_mib, shown.vcores) == (size.memory_mib, size.vcores)

        await until(is_shown)


async def test_unknown_nodes_custom_types_and_versions(yarn_lab: Lab, rest: RestResourceManagerClient) -> None:
    with pytest.raises(errors.UnrecognizedNodeError):
        await rest.update_node_resource([NodeResourceUpdate(NodeId("nope", 1), Resource(1, 1))])
    gpu = NodeId("10.99.250.1", 8041)
    resource = Resource(4096, 4, (ResourceInformation(GPU, 2, ""),))
    async with Fleet(yarn_lab.yarn.tracker_address, [gpu], options=FleetOptions(resource=resource)):

        async def is_listed() -> bool:
            return gpu in {one.node_id for one in await rest.get_cluster_nodes()}

        await until(is_listed)
        with pytest.raises(CustomTypesError, match=GPU):
            await rest.update_node_resource([NodeResourceUpdate(gpu, Resource(1024, 1))])
    assert await rest.get_version() == yarn_lab.yarn.version


async def test_what_a_labelled_partition_waits_for_is_told_over_rest_alone(
    yarn_lab: Lab, rest: RestResourceManagerClient, rpc: ResourceManagerClient
) -> None:
    await make_label(RealBackend(yarn_lab, SharedApplication(yarn_lab)))
    small = NodeId("10.99.250.2", 8041)
    application = None
    # None of the containers fits there.
    async with Fleet(yarn_lab.yarn.tracker_address, [small], options=FleetOptions(resource=Resource(256, 1))):

        async def is_listed() -> bool:
            return small in {one.node_id for one in await rest.get_cluster_nodes()}

        await until(is_listed)
        await rpc.replace_labels_on_nodes({small: [LABEL]})
        try:
            application = yarn_lab.submit(queue="root.interactive")
            application.ask(count=3, memory_mib=512, vcores=1)

            async def is_waited_for() -> bool:
                return await PartitionDemandReader(rest).read() == {"": Resource(0, 0), LABEL: Resource(1536, 3)}

            await until(is_waited_for)
            over_rpc = find_queue(await rpc.get_queue_info("root"), "root.interactive")
            assert over_rpc is not None
            assert over_rpc.pending == Resource(0, 0)
        finally:
            if application is not None:
                application.stop()
            await rpc.replace_labels_on_nodes({small: []})


async def test_a_real_rpc_port_is_told_from_a_web_port(yarn_lab: Lab) -> None:
    async with rest_client(yarn_lab, yarn_lab.yarn.ports.admin) as client:
        with pytest.raises(errors.WrongPortError, match="Hadoop RPC port"):
            await client.get_version()


async def test_the_embedded_web_service_has_no_field_that_the_real_one_has_not(yarn_lab: Lab) -> None:
    with requests.Session() as session:
        session.trust_env = False
        real = session.get(yarn_lab.yarn.rest_url + "/ws/v1/cluster/nodes", timeout=10).json()["nodes"]["node"][0]
        async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as yarn, EmbeddedWebService(yarn) as web:
            yarn.add_node("nm")
            async with rest_client(yarn_lab, web.port) as client:
                embedded = await client._get("/nodes")
    assert set(embedded["nodes"]["node"][0]) <= set(real)


async def diagnose(lab: Lab, **hadoop: Any) -> list[Finding]:
    """Run all checks without Kubernetes; no host name can be resolved."""

    async def resolve(host: str) -> bool:
        return False

    settings = Settings.model_validate({"hadoop": {"conf_dir": str(lab.yarn.conf_dir), **hadoop}})
    return await examine(settings, {}, with_kubernetes=False, progress=lambda text: None, resolve=resolve)


def bad(findings: list[Finding]) -> dict[Check, Severity]:
    """Give what is worse than a note, by check."""
    return {one.check: one.severity for one in findings if one.severity in (Severity.WARNING, Severity.ERROR)}


async def test_doctor_finds_what_is_wrong_on_a_real_cluster_and_changes_nothing(yarn_lab: Lab) -> None:
    calls = yarn_lab.yarn.count_update_calls(succeeded_only=True)
    # The lab's NodeManager registers with 4096 MiB, four times the floor of the settings.
    assert bad(await diagnose(yarn_lab)) == {Check.REGISTERED: Severity.WARNING}
    assert bad(await diagnose(yarn_lab, user="alice"))[Check.ADMIN_ACL] is Severity.ERROR
    assert Check.TRANSPORT in bad(await diagnose(yarn_lab, transport="rest"))
    assert yarn_lab.yarn.count_update_calls(succeeded_only=True) == calls


async def test_doctor_finds_faults_in_real_files(yarn_lab: Lab, tmp_path: Path) -> None:
    for name in ("core-site.xml", "yarn-site.xml"):
        (tmp_path / name).write_bytes((yarn_lab.yarn.conf_dir / name).read_bytes())
    node = busy_node(yarn_lab)
    (tmp_path / "capacity-scheduler.xml").write_text("<configuration/>")
    (tmp_path / "dynamic-resources.xml").write_text(
        "<configuration><property><name>yarn.resource.dynamic.nodes</name>"
        f"<value>{node}</value></property></configuration>"
    )
    found = bad(await diagnose(yarn_lab, conf_dir=str(tmp_path)))
    assert found[Check.CALCULATOR] is Severity.ERROR
    assert found[Check.DYNAMIC_RESOURCES] is Severity.ERROR

    site = (tmp_path / "yarn-site.xml").read_text()
    ports = yarn_lab.yarn.ports
    (tmp_path / "yarn-site.xml").write_text(site.replace(f":{ports.admin}<", f":{ports.web}<"))
    began = time.monotonic()
    assert bad(await diagnose(yarn_lab, conf_dir=str(tmp_path)))[Check.PORT] is Severity.ERROR
    assert time.monotonic() - began < 60
