# SPDX-License-Identifier: Apache-2.0
"""Clients are made as the settings say, and follow the clusters that come, change and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.controller.outside import RecordingEvents
from yarn_copilot.cli import clusters
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses, WebConfiguration
from yarn_copilot.hadoop.configuration_watching import WHOLE_DIRECTORY, ClusterChanges
from yarn_copilot.hadoop.errors import ClientClosedError
from yarn_copilot.kube.clock import SystemClock


def cluster(id_: str = "a", *, web: Address | None = None, is_https: bool = False) -> ClusterConfiguration:
    rm = ResourceManagerAddresses(rm_id="", client=Address("rm", 8032), admin=Address("rm", 8033), web=web)
    return ClusterConfiguration(id=id_, resource_managers=(rm,), web=WebConfiguration(is_https=is_https))


def hadoop(**fields: Any) -> HadoopSettings:
    return HadoopSettings.model_validate(fields)


def test_the_transport_of_a_cluster_wins_over_the_general_one() -> None:
    settings = hadoop(transport="rest", cluster_transports={"a": "rpc"})
    assert clusters.transport_of(settings, "a") is Transport.RPC
    assert clusters.transport_of(settings, "b") is Transport.REST
    found = cluster(web=Address("rm", 8088))
    assert clusters.addresses_of(found, Transport.RPC) == ("rm:8032",)
    assert clusters.addresses_of(found, Transport.REST) == ("rm:8088",)


@pytest.mark.parametrize(("is_https", "key"), [(False, "webapp.address"), (True, "webapp.https.address")])
def test_rest_without_a_web_address_is_refused_with_the_key(is_https: bool, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"cluster a: transport rest needs yarn\.resourcemanager\.{key}"):
        clusters.resource_manager(cluster(is_https=is_https), hadoop(transport="rest"), SystemClock())


def test_authorities_that_cannot_be_read_are_refused_with_the_setting(tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    found = cluster(web=Address("rm", 8090), is_https=True)
    for path in (bad, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match=r"hadoop\.web_ca_file: .*no authorities can be read"):
            clusters.web_transport(found, hadoop(web_ca_file=str(path)))


class Holder:
    """Record what the controller is told, and whether the port that it had was closed by then."""

    def __init__(self) -> None:
        self.ports: dict[str, ClusterPort] = {}

    async def set_cluster(self, id_: str, port: ClusterPort) -> None:
        self.ports[id_] = port

    async def remove_cluster(self, id_: str) -> None:
        del self.ports[id_]


async def is_closed(port: ClusterPort) -> bool:
    try:
        await port.resource_manager.get_cluster_metrics()
    except ClientClosedError:
        return True
    except Exception:
        return False
    return False


async def test_clusters_come_change_and_go_and_former_clients_are_closed() -> None:
    events, holder = RecordingEvents(), Holder()
    clients = clusters.ClusterClients(
        hadoop(call_timeout_seconds=0.1, connect_timeout_seconds=0.1), SystemClock(), events
    )
    holder.ports = dict(clients.ports({"a": cluster("a")}))
    first = holder.ports["a"]

    await clients.apply(ClusterChanges(changed={"a": cluster("a")}, added={"b": cluster("b")}), holder)
    second, other = holder.ports["a"], holder.ports["b"]
    assert second is not first
    assert await is_closed(first)

    await clients.apply(ClusterChanges(removed=("a",)), holder)
    assert list(holder.ports) == ["b"]
    assert await is_closed(second)

    await clients.aclose()
    assert await is_closed(other)
    assert [message for _, _, message in events.of_controller] == [
        "Hadoop configuration: cluster b added, cluster a changed",
        "Hadoop configuration: cluster a removed",
    ]


async def test_what_is_broken_is_told_and_leaves_the_rest_alone() -> None:
    events, holder = RecordingEvents(), Holder()
    clients = clusters.ClusterClients(hadoop(cluster_transports={"b": "rest"}), SystemClock(), events)
    await clients.apply(
        ClusterChanges(
            added={"b": cluster("b"), "c": cluster("c")},
            broken={"a": "bad key", WHOLE_DIRECTORY: "gone"},
            mended=("d",),
        ),
        holder,
    )
    assert list(holder.ports) == ["c"]
    told = [message for _, _, message in events.of_controller]
    assert told[0] == "Hadoop configuration: cluster c added, the files of cluster d are right again"
    assert "cluster a is left as it was: bad key" in told
    assert "the Hadoop folder cannot be read, every cluster stays as it is: gone" in told
    assert any("cluster b: transport rest needs" in message for message in told)
    await clients.aclose()


async def test_the_start_goes_on_without_a_cluster_that_cannot_be_reached_so_and_ends_without_any() -> None:
    events = RecordingEvents()
    clients = clusters.ClusterClients(hadoop(cluster_transports={"b": "rest"}), SystemClock(), events)
    assert list(clients.ports({"a": cluster("a"), "b": cluster("b")})) == ["a"]
    with pytest.raises(ConfigError, match="cluster b: transport rest needs"):
        clients.ports({"b": cluster("b")})
    await clients.aclose()
