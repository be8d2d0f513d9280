# SPDX-License-Identifier: Apache-2.0
"""Where a pod may run, as the API server writes it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from batch_resources.demand.placement import ANYWHERE, Placement, Requirement, Term, Toleration
from yarn_copilot.kube.model import Pod
from yarn_copilot.kube.scheduling import is_gated, placement_of


def _pod(**spec: Any) -> Pod:
    body = {"metadata": {"name": "pod"}, "spec": {"containers": [], **spec}}
    return msgspec.json.decode(json.dumps(body), type=Pod)


AFFINITY = {
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
                {"matchExpressions": None},
            ]
        },
    },
}


def test_reads_selector_affinity_and_tolerations() -> None:
    pod = _pod(
        nodeSelector={"disk": "ssd", "arch": "amd64"},
        affinity=AFFINITY,
        tolerations=[{"key": "batch", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    )
    assert placement_of(pod.spec) == Placement(
        node_selector=(("arch", "amd64"), ("disk", "ssd")),
        terms=(
            Term(expressions=(Requirement("zone", "In", ("a", "b")),)),
            Term(fields=(Requirement("metadata.name", "In", ("node-1",)),)),
            Term(),
        ),
        tolerations=(Toleration(key="batch", operator="Exists", effect="NoExecute"),),
    )


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="absent"),
        pytest.param({"nodeSelector": None, "affinity": None, "tolerations": None}, id="null"),
        pytest.param({"nodeSelector": {}, "affinity": {"nodeAffinity": {}}, "tolerations": []}, id="empty"),
        pytest.param({"affinity": {"podAffinity": {"requiredDuringScheduling": [1]}}}, id="other affinity"),
        pytest.param({"affinity": ["not", "an", "object"]}, id="a shape that is not known"),
    ],
)
def test_without_constraints_a_pod_runs_anywhere(spec: dict[str, Any]) -> None:
    assert placement_of(_pod(**spec).spec) == ANYWHERE


@pytest.mark.parametrize(
    ("spec", "gated"),
    [({}, False), ({"schedulingGates": []}, False), ({"schedulingGates": [{"name": "quota"}]}, True)],
)
def test_a_gate_keeps_a_pod_from_waiting(spec: dict[str, Any], gated: bool) -> None:
    assert is_gated(_pod(**spec).spec) is gated
