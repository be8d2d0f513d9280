# SPDX-License-Identifier: Apache-2.0
"""Take over from the Go bridge in mode strict: what it left is adopted, nobody dies, nothing is sold twice."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest

from lab.cluster import Lab
from lab.judge.events import CapacityEvent
from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod
from lab.processes import probes
from tests.lab.bridge import GIB, MIB, BridgedNode, Claim, Unique, merged
from tests.lab.strict import STRICT, StrictLab, strict_lab

_CORES: Final = 20
_IN_USE: Final = 6
_BOOKED: Final = 4
_MORE_PODS: Final = 3
_LIFETIME_SECONDS: Final = float(STRICT["yarn"]["message_lifetime_seconds"])
_DEMAND: Final = merged(STRICT, {"yarn": {"queue_interval_seconds": 1}})
_CONVERGED_SECONDS: Final = 60.0
_HOST_NAME: Final = "kubernetes.io/hostname"


def _leave_as_the_go_bridge_does(found: StrictLab, node: BridgedNode) -> dict[str, Any]:
    """Offer all of origin in decimal megabytes and claim what is used, without a counter; returns another's entry."""
    lab = found.bridge.lab
    lab.yarn.set_capacity(node.node_id, _CORES * 2 * GIB // 1_000_000, _CORES)
    foreign = {
        "name": "other-writer",
        "priority": "koord-batch",
        "resources": {bodies.BATCH_CPU: "1000", bodies.BATCH_MEMORY: "1Gi"},
    }
    resources = {bodies.BATCH_CPU: f"{_IN_USE}k", bodies.BATCH_MEMORY: str(_IN_USE * GIB)}
    entry = {"name": "hadoop-yarn", "priority": "koord-batch", "resources": resources}
    text = json.dumps({"allocations": [foreign, entry]})
    found.bridge.objects.annotate_node(node.name, {bodies.THIRD_PARTY_ANNOTATION: text})
    return foreign


def _is_settled(found: StrictLab, node: BridgedNode) -> bool:
    memory_mib, vcores = found.bridge.capacity(node)
    claim = found.bridge.claim(node)
    if claim != Claim(vcores * 1000, memory_mib * MIB):
        raise probes.NotReadyError(f"{node.name} has {vcores} vcores, {memory_mib} MiB and claims {claim}")
    return True


@pytest.mark.timeout(400)
def test_takes_over_from_the_go_bridge_in_mode_strict_while_its_jobs_run(lab: Lab, unique: Unique) -> None:
    with strict_lab(lab, unique, units=_CORES, config=_DEMAND) as found:
        bridge, node = found.bridge, found.nodes[0]
        foreign = _leave_as_the_go_bridge_does(found, node)
        application = lab.submit()
        application.ask(count=_IN_USE, memory_mib=1024, node=node.node_id)
        application.wait_running(_IN_USE)
        pod = BatchPod(name=unique("pod"), cpu_milli=_BOOKED * 1000, memory_bytes=_BOOKED * GIB, node_name=node.name)
        bridge.objects.create_batch_pod(pod)
        free = _CORES - 1 - _BOOKED  # of origin, less the other entry and the pod
        began_at = time.time()
        bridge.start()
        bridge.wait(
            lambda: bridge.capacity(node)[1] <= free, "no more is offered than there is", seconds=_CONVERGED_SECONDS
        )
        claims = [bridge.claim(node)]
        bridge.wait(lambda: _is_settled(found, node), "claim and capacity are one", seconds=_CONVERGED_SECONDS)

        # Now both sides want more; pods that ask for little, since they may have what YARN does not hold yet.
        application.ask(count=_CORES, memory_mib=1024, node=node.node_id)
        pods = [unique("pod") for _ in range(_MORE_PODS)]
        for name in pods:
            bridge.objects.create_batch_pod(
                BatchPod(name=name, cpu_milli=1000, memory_bytes=GIB, node_selector={_HOST_NAME: node.name})
            )
        bridge.wait(
            lambda: all(bridge.objects.node_of_pod("default", name) for name in pods),
            "all pods are bound",
            seconds=_CONVERGED_SECONDS,
        )
        bridge.wait(
            lambda: bridge.used(node)[1] > _IN_USE, "one container more has started", seconds=_CONVERGED_SECONDS
        )
        claims.append(bridge.claim(node))
        verdict = found.recording.verdict()
        moved = [each for each in found.recording.events() if isinstance(each, CapacityEvent) and each.at >= began_at]
        first = min(each.at for each in moved if each.manager == node.node_id)
        assert first - began_at >= _LIFETIME_SECONDS, "messages of the other bridge could still land"
        document = bridge.objects.third_party(node.name)
        events = bridge.events(node, "ForeignWriterOfOurEntry")
    assert found.recording.problems == []
    assert (verdict.violations, verdict.claims_below_use) == ((), ())
    assert all(claim is not None and claim >= Claim(_IN_USE * 1000, 0) for claim in claims)
    assert application.killed() == []
    assert len(application.running()) >= _IN_USE
    assert events == []
    assert document is not None
    assert foreign in document["allocations"]
