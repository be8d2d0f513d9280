# SPDX-License-Identifier: Apache-2.0
"""Test that JSON in any of its odd shapes becomes nodes and counts, or an error of the whole document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeState, Resource, ResourceInformation
from yarn_copilot.hadoop.rest import decoding, node_list

ReadList = Callable[[object], list[NodeReport]]


@pytest.fixture(params=["tolerant", "fast"])
def read_list(request: pytest.FixtureRequest) -> ReadList:
    """Give the two ways in which a list is read; they must agree on everything."""
    if request.param == "tolerant":
        return decoding.node_reports
    return lambda document: node_list.decode_node_list(msgspec.json.encode(document))


def node(**changes: Any) -> dict[str, Any]:
    """Make a node as Hadoop 3.5.0 writes it, with changes; None removes a field."""
    whole = {
        "rack": "/r", "state": "RUNNING", "id": "nm:8041", "nodeHTTPAddress": "nm:8042", "lastHealthUpdate": 5,
        "numContainers": 2, "usedMemoryMB": 1024, "availMemoryMB": 3072, "usedVirtualCores": 1,
        "availableVirtualCores": 3, "nodeLabels": ["gpu"],
        "totalResource": {
            "memory": 4096, "vCores": 4,
            "resourceInformations": {"resourceInformation": [
                {"name": "memory-mb", "value": 4096, "units": "Mi"}, {"name": "vcores", "value": 4, "units": ""},
                {"name": "yarn.io/gpu", "value": 2, "units": ""},
            ]},
        },
        **changes,
    }  # fmt: skip
    return {key: value for key, value in whole.items() if value is not None}


def test_a_node_is_read(read_list: ReadList) -> None:
    (report,) = read_list({"nodes": {"node": [node()]}})
    assert report.node_id == NodeId("nm", 8041)
    assert report.state is NodeState.RUNNING
    assert report.capability == Resource(4096, 4, (ResourceInformation("yarn.io/gpu", 2),))
    assert report.used == Resource(1024, 1)
    assert (report.containers, report.rack, report.http_address, report.labels) == (2, "/r", "nm:8042", ("gpu",))


@pytest.mark.parametrize(
    ("document", "count"),
    [
        pytest.param({"nodes": {"node": [node(), node(id="b:1")]}}, 2, id="list"),
        pytest.param({"nodes": {"node": node()}}, 1, id="single object"),
        pytest.param({"nodes": {"node": []}}, 0, id="empty list"),
        pytest.param({"nodes": {}}, 0, id="empty object"),
        pytest.param({"nodes": None}, 0, id="null"),
        pytest.param({"nodes": ""}, 0, id="empty text"),
    ],
)
def test_a_list_may_have_any_shape(read_list: ReadList, document: object, count: int) -> None:
    assert len(read_list(document)) == count


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="today's"),
        pytest.param({"usedMemoryMB": "1024"}, id="number as text"),
        pytest.param({"rack": None, "nodeHTTPAddress": None, "nodeLabels": None, "numContainers": None}, id="missing"),
        pytest.param({"nodeLabels": "one"}, id="single label"),
        pytest.param({"usedMemoryMB": 1024.0}, id="number with a point"),
        pytest.param({"totalResource": None}, id="old version"),
        pytest.param({"totalResource": {"memory": 1, "vCores": 1}}, id="no types"),
        pytest.param({"usedResource": {"resourceInformations": {"resourceInformation": {"name": "x"}}}}, id="one type"),
        pytest.param({"more": {"than": ["known"]}}, id="more"),
    ],
)
def test_both_ways_give_the_same_reports(changes: dict[str, Any]) -> None:
    document = {"nodes": {"node": [node(), node(id="other:1", **changes)]}}
    fast = node_list.decode_node_list(msgspec.json.encode(document))
    assert fast == decoding.node_reports(document)
    assert len(fast) == 2


def test_what_is_no_json_is_a_violation() -> None:
    for body in (b"", b"{", b"\xff", b'{"nodes":{"node":[{"id":"\xa9"}]}}'):
        with pytest.raises(ProtocolViolationError, match="no JSON"):
            node_list.decode_node_list(body)


def test_numbers_as_text_and_figures_of_old_versions_are_understood() -> None:
    report = decoding.node_report(node(usedMemoryMB="1024", totalResource=None))
    assert report.capability == Resource(4096, 4)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(node(id="nm"), id="id without port"),
        pytest.param(node(id=None), id="no id"),
        pytest.param(node(state="ASLEEP"), id="unknown state"),
        pytest.param(node(totalResource={"memory": 1}), id="no vCores"),
        pytest.param(node(totalResource={"memory": 1.5, "vCores": 1}), id="fraction"),
        pytest.param(node(totalResource={"memory": True, "vCores": 1}), id="boolean"),
        pytest.param(node(totalResource={"memory": "many", "vCores": 1}), id="word"),
        pytest.param(node(usedMemoryMB="9" * 400), id="endless number"),
        pytest.param("nm", id="text"),
        pytest.param(None, id="null"),
    ],
)
def test_one_broken_node_is_an_error_of_the_list_not_a_node_less(read_list: ReadList, broken: object) -> None:
    with pytest.raises(ProtocolViolationError):
        read_list({"nodes": {"node": [node(), broken]}})


def test_counts_are_read_and_a_missing_one_is_an_error() -> None:
    names = ("totalNodes", "activeNodes", "lostNodes", "unhealthyNodes", "decommissionedNodes", "rebootedNodes")
    document = {"clusterMetrics": {name: number for number, name in enumerate(names)}}
    metrics = decoding.cluster_metrics(document)
    assert (metrics.node_managers, metrics.active, metrics.rebooted, metrics.shutdown) == (0, 1, 5, 0)
    with pytest.raises(ProtocolViolationError, match="totalNodes"):
        decoding.cluster_metrics({"clusterMetrics": {}})
