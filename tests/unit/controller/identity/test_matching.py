# SPDX-License-Identifier: Apache-2.0
"""Test how a NodeManager is recognised in the ResourceManager's node list."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.controller.outside import FakeResourceManager
from tests.unit.controller.state.test_nodes import node, reduced
from yarn_copilot.controller.identity.host_index import HostIndex
from yarn_copilot.controller.identity.matching import Candidate, candidates, match
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.controller.state.pods import ManagerPod
from yarn_copilot.hadoop.model import NodeState

POD = ManagerPod(
    key="hadoop/nm-0",
    node="worker-1",
    name="nm-0",
    namespace="hadoop",
    hostname="nm-0",
    subdomain="",
    ip="10.1.0.7",
    host_network=False,
    phase="Running",
    created="2026-01-01T00:00:00Z",
    node_id=None,
    cluster=None,
    terminating=False,
)


def host(name: str = "worker-1", **changes: Any) -> NodeFacts:
    return replace(reduced(node()), name=name, **{"addresses": ("10.0.0.1",), "host_daemon": True, **changes})


def found(candidate: Candidate, *listed: str, http: dict[str, str] | None = None) -> str | None:
    rm = FakeResourceManager()
    for node_id in listed:
        rm.add(node_id, http_address=(http or {}).get(node_id, ""))
    result = match(candidate, HostIndex(rm.reports.values()), rm.reports)
    return None if result is None else str(result)


def of(pod: ManagerPod, facts: NodeFacts | None = None) -> Candidate:
    (only,) = candidates([pod], facts)
    return only


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        pytest.param({}, "nm-0:8041", id="host name"),
        pytest.param({}, "NM-0:8041", id="case"),
        pytest.param({"hostname": "other"}, "nm-0:1", id="pod name"),
        pytest.param({}, "10.1.0.7:8041", id="pod address"),
        pytest.param({"subdomain": "nms"}, "nm-0.nms.hadoop.svc.cluster.local:8041", id="service FQDN"),
        pytest.param({"subdomain": "nms"}, "nm-0.nms.hadoop.svc.corp.example:8041", id="other cluster domain"),
        pytest.param({"subdomain": "nms"}, "nm-0.nms.hadoop:8041", id="without svc"),
        pytest.param({}, "nm-0.example.com:8041", id="first label"),
        pytest.param({"node_id": "special:7"}, "special:7", id="annotation"),
        pytest.param({"node_id": "fe80::1:7"}, "fe80::1:7", id="IPv6 annotation"),
    ],
)
def test_a_pod_is_found_by_every_name_it_has(changes: dict[str, Any], listed: str) -> None:
    assert found(of(replace(POD, **changes)), "noise:1", listed) == listed


def test_a_pod_is_found_by_its_http_address() -> None:
    assert found(of(POD), "odd:1", http={"odd:1": "10.1.0.7:8042"}) == "odd:1"


def test_a_pod_on_the_hosts_network_is_found_by_the_nodes_names() -> None:
    assert found(of(replace(POD, host_network=True), host()), "10.0.0.1:8041") == "10.0.0.1:8041"
    assert found(of(POD, host()), "10.0.0.1:8041") is None


def test_the_annotation_decides_alone() -> None:
    assert found(of(replace(POD, node_id="absent:1")), "nm-0:8041") is None
    assert found(of(replace(POD, node_id="nonsense")), "nm-0:8041") is None


def test_the_more_specific_name_wins() -> None:
    stateful = of(replace(POD, subdomain="nms"))
    assert found(stateful, "nm-0:1", "nm-0.nms.hadoop.svc.x:2") == "nm-0.nms.hadoop.svc.x:2"


def test_a_first_label_that_several_hosts_share_says_nothing() -> None:
    assert found(of(POD), "nm-0.a.example:1", "nm-0.b.example:1") is None
    assert found(of(POD), "nm-0.a.example:1", "nm-0.a.example:2") == "nm-0.a.example:2"


def test_numbers_are_no_first_labels() -> None:
    assert found(of(replace(POD, hostname="10", name="10", ip="")), "10.1.0.7:1") is None


def test_of_two_registrations_the_active_one_counts_then_the_newest() -> None:
    rm = FakeResourceManager()
    old, new = rm.add("nm-0:1"), rm.add("nm-0:2")
    index = HostIndex(rm.reports.values())
    assert match(of(POD), index, rm.reports) == new
    rm.change(new, state=NodeState.LOST)
    assert match(of(POD), index, rm.reports) == old


def test_of_several_pods_running_beats_pending_then_staying_then_newest() -> None:
    pending = replace(POD, key="hadoop/b", phase="Pending", created="2027-01-01T00:00:00Z")
    leaving = replace(POD, key="hadoop/c", terminating=True, created="2027-01-01T00:00:00Z")
    newer = replace(POD, key="hadoop/d", created="2026-06-01T00:00:00Z")
    assert of(POD).source == "pod hadoop/nm-0"
    for pods, winner in (
        ([POD, pending], "pod hadoop/nm-0"),
        ([leaving, POD], "pod hadoop/nm-0"),
        ([POD, newer, leaving], "pod hadoop/d"),
    ):
        assert [candidate.source for candidate in candidates(pods, None)] == [winner]


def test_different_annotations_and_clusters_are_different_node_managers() -> None:
    pods = [
        replace(POD, key="a", node_id="x:1"),
        replace(POD, key="b", node_id="y:1"),
        replace(POD, key="c", cluster="blue"),
        replace(POD, key="d"),
    ]
    assert {candidate.source for candidate in candidates(pods, None)} == {"pod a", "pod b", "pod c"}


def test_a_host_stands_for_itself_only_without_pods_and_with_its_label() -> None:
    assert [candidate.source for candidate in candidates([], host())] == ["node worker-1"]
    assert candidates([], host(host_daemon=False)) == []
    assert candidates([], None) == []
    assert [candidate.source for candidate in candidates([POD], host())] == ["pod hadoop/nm-0"]


@pytest.mark.parametrize("listed", ["worker-1:1", "10.0.0.1:1", "worker-1.example.com:1"])
def test_a_host_is_found_by_name_address_and_first_label(listed: str) -> None:
    (candidate,) = candidates([], host())
    assert found(candidate, listed) == listed


def test_a_host_with_a_full_name_is_not_found_by_a_label() -> None:
    (candidate,) = candidates([], host("worker-1.a.example", node_id=None))
    assert found(candidate, "worker-1.b.example:1") is None
