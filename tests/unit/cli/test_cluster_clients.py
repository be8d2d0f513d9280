# SPDX-License-Identifier: Apache-2.0
"""Clients follow the clusters that come, change and go, and refused clusters are tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lab.processes.certificates import make_certificate
from tests.unit.cli.test_clusters import cluster, hadoop
from tests.unit.controller.outside import RecordingEvents
from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.cli.cluster_clients import LOOK_SECONDS, RETRY_SECONDS, ClusterClients
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.errors import ConfigError, YarnCopilotError
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration_watching import WHOLE_DIRECTORY, ClusterChanges
from yarn_copilot.hadoop.errors import ClientClosedError
from yarn_copilot.kube.clock import SystemClock


class Holder:
    """Record what the controller is told, and whether the port that it had was closed by then."""

    def __init__(self) -> None:
        self.ports: dict[str, ClusterPort] = {}

    async def set_cluster(self, id_: str, port: ClusterPort) -> None:
        self.ports[id_] = port

    async def remove_cluster(self, id_: str) -> None:
        self.ports.pop(id_, None)


async def is_closed(port: ClusterPort) -> bool:
    try:
        await port.resource_manager.get_cluster_metrics()
    except ClientClosedError:
        return True
    except YarnCopilotError:
        return False  # nobody answers there; it was tried
    return False


async def test_clusters_come_change_and_go_and_former_clients_are_closed() -> None:
    events, holder = RecordingEvents(), Holder()
    clients = ClusterClients(hadoop(call_timeout_seconds=0.1, connect_timeout_seconds=0.1), SystemClock(), events)
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
    clients = ClusterClients(hadoop(cluster_transports={"b": "rest"}), SystemClock(), events)
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
    clients = ClusterClients(hadoop(cluster_transports={"b": "rest"}), SystemClock(), events)
    assert list(clients.ports({"a": cluster("a"), "b": cluster("b")})) == ["a"]
    with pytest.raises(ConfigError, match="cluster b: transport rest needs"):
        clients.ports({"b": cluster("b")})
    await clients.aclose()


async def test_a_refused_cluster_is_tried_again_when_the_settings_change() -> None:
    clock, events, holder = ManualClock(), RecordingEvents(), Holder()
    clients = ClusterClients(hadoop(cluster_transports={"b": "rest", "c": "rest"}), clock, events)
    holder.ports = dict(clients.ports({"a": cluster("a"), "b": cluster("b")}))
    await clients.apply(ClusterChanges(added={"c": cluster("c")}), holder)
    assert list(clients.refused) == ["b", "c"]
    first = holder.ports["a"]
    trying = asyncio.ensure_future(clients.keep_trying(holder, clock.sleep))
    await clock.advance(LOOK_SECONDS)
    told = len(events.of_controller)

    clients.take_settings(hadoop(cluster_transports={"c": "rest"}, call_timeout_seconds=50))
    await clock.advance(LOOK_SECONDS)
    assert list(holder.ports) == ["a", "b"]
    assert holder.ports["a"] is first
    assert [message for _, _, message in events.of_controller[told:]] == [
        "Hadoop configuration: cluster b is no longer refused"
    ]
    clients.take_settings(hadoop(call_timeout_seconds=50))
    await clock.advance(LOOK_SECONDS)
    assert list(holder.ports) == ["a", "b", "c"]
    assert clients.refused == {}
    trying.cancel()
    await clients.aclose()


async def test_a_refused_cluster_is_tried_from_time_to_time_and_told_once(tmp_path: Path) -> None:
    clock, events, holder = ManualClock(), RecordingEvents(), Holder()
    authorities = tmp_path / "ca.pem"
    clients = ClusterClients(hadoop(web_ca_file=str(authorities)), clock, events)
    behind_tls = cluster("b", web=Address("rm", 8090), is_https=True)
    await clients.apply(ClusterChanges(added={"b": behind_tls}), holder)
    trying = asyncio.ensure_future(clients.keep_trying(holder, clock.sleep))
    await clock.advance(3 * RETRY_SECONDS)
    assert [message for _, _, message in events.of_controller] == [
        f"hadoop.web_ca_file: {authorities}: no authorities can be read: [Errno 2] No such file or directory"
    ]
    authorities.write_text("half of a file")
    await clock.advance(2 * RETRY_SECONDS)
    assert len(events.of_controller) == 2
    make_certificate(tmp_path, "ca")[0].rename(authorities)
    await clock.advance(RETRY_SECONDS + LOOK_SECONDS)
    assert list(holder.ports) == ["b"]
    assert events.of_controller[2:] == [
        ("Normal", "ConfigurationReloaded", "Hadoop configuration: cluster b is no longer refused")
    ]
    trying.cancel()
    await clients.aclose()


async def test_a_change_that_is_refused_leaves_the_former_client_until_it_is_not() -> None:
    clock, events, holder = ManualClock(), RecordingEvents(), Holder()
    clients = ClusterClients(hadoop(transport="rest"), clock, events)
    holder.ports = dict(clients.ports({"a": cluster("a", web=Address("rm", 8088))}))
    first = holder.ports["a"]
    await clients.apply(ClusterChanges(changed={"a": cluster("a")}), holder)
    assert holder.ports["a"] is first
    assert not await is_closed(first)
    clients.take_settings(hadoop(transport="rpc"))
    await clients.retry(holder)
    assert holder.ports["a"] is not first
    assert await is_closed(first)
    await clients.aclose()


async def test_a_refused_cluster_that_goes_is_forgotten() -> None:
    clock, events, holder = ManualClock(), RecordingEvents(), Holder()
    clients = ClusterClients(hadoop(transport="rest"), clock, events)
    await clients.apply(ClusterChanges(added={"a": cluster("a")}), holder)
    await clients.apply(ClusterChanges(removed=("a",)), holder)
    clients.take_settings(hadoop())
    await clients.retry(holder)
    assert (holder.ports, clients.refused) == ({}, {})


async def test_the_deadline_of_calls_stays_since_the_lease_was_measured_by_it() -> None:
    clients = ClusterClients(hadoop(call_timeout_seconds=2), ManualClock(), RecordingEvents())
    clients.take_settings(hadoop(call_timeout_seconds=50, user="other"))
    port = clients.port(cluster("a"))
    assert clients.settings.call_timeout_seconds == 2
    assert clients.settings.user == "other"
    assert port.addresses == ("rm:8032",)
    await clients.aclose()
