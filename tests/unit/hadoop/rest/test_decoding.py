# SPDX-License-Identifier: Apache-2.0
"""Test that JSON in any of its odd shapes becomes nodes and counts, or an error of the whole document."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import NodeId, NodeState, Resource, ResourceInformation
from yarn_copilot.hadoop.rest import decoding


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


def test_a_node_is_read() -> None:
    (report,) = decoding.node_reports({"nodes": {"node": [node()]}})
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
def test_a_list_may_have_any_shape(document: object, count: int) -> None:
    assert len(decoding.node_reports(document)) == count


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
def test_one_broken_node_is_an_error_of_the_list_not_a_node_less(broken: object) -> None:
    with pytest.raises(ProtocolViolationError):
        decoding.node_reports({"nodes": {"node": [node(), broken]}})


def test_counts_are_read_and_a_missing_one_is_an_error() -> None:
    names = ("totalNodes", "activeNodes", "lostNodes", "unhealthyNodes", "decommissionedNodes", "rebootedNodes")
    document = {"clusterMetrics": {name: number for number, name in enumerate(names)}}
    metrics = decoding.cluster_metrics(document)
    assert (metrics.node_managers, metrics.active, metrics.rebooted, metrics.shutdown) == (0, 1, 5, 0)
    with pytest.raises(ProtocolViolationError, match="totalNodes"):
        decoding.cluster_metrics({"clusterMetrics": {}})
