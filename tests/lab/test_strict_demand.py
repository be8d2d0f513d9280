# SPDX-License-Identifier: Apache-2.0
"""On real servers demand moves the boundary: to YARN alone, to pods in few steps, and once for a large pod."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Lab
from lab.judge.events import CapacityEvent
from lab.kubernetes.bodies import BatchPod
from lab.processes import probes
from tests.lab.bridge import GIB, BridgedNode, Unique, merged
from tests.lab.figures import record_figures
from tests.lab.strict import STRICT, StrictLab, strict_lab

_CORES = 20
_LEFT_TO_KUBERNETES = 1
_DEMAND = merged(STRICT, {"yarn": {"queue_interval_seconds": 1}})
_MOVED_SECONDS = 60.0
_MOST_UPDATES = 4
"""Updates of capacity per node that one arrival of pods may cost; a boundary that swings would need more."""


def _wait_vcores(found: StrictLab, node: BridgedNode, vcores: int) -> None:
    def has_moved() -> bool:
        seen = found.bridge.capacity(node)[1]
        if seen != vcores:
            raise probes.NotReadyError(f"{node.name} offers {seen} vcores, wanted {vcores}")
        return True

    found.bridge.wait(has_moved, f"the boundary of {node.name} has moved", seconds=_MOVED_SECONDS)


def _updates(found: StrictLab, node: BridgedNode) -> int:
    return sum(isinstance(event, CapacityEvent) and event.manager == node.node_id for event in found.recording.events())


def _wait_bound(found: StrictLab, names: list[str]) -> dict[str, str]:
    objects = found.bridge.lab.objects
    places: dict[str, str] = {}

    def are_bound() -> bool:
        for name in names:
            node = objects.node_of_pod("default", name)
            if node is None:
                raise probes.NotReadyError(f"pod {name} is not scheduled")
            places[name] = node
        return True

    found.bridge.wait(are_bound, f"{names} are scheduled", seconds=_MOVED_SECONDS)
    return places


@pytest.mark.timeout(400)
def test_who_waits_gets_what_is_free_and_a_large_pod_moves_one_boundary(
    lab: Lab, unique: Unique, tmp_path: Path
) -> None:
    figures: dict[str, Any] = {}
    with strict_lab(lab, unique, units=_CORES, config=_DEMAND) as found:
        first, second, full = found.nodes
        found.bridge.start()
        # More than one node can hold is asked for there, so that applications wait while the others have room.
        application = lab.submit()
        application.ask(count=2 * _CORES, memory_mib=1024, node=full.node_id)
        began_at = time.monotonic()
        for node in found.nodes:
            _wait_vcores(found, node, _CORES - _LEFT_TO_KUBERNETES)
        figures["yarn_gets_all_seconds"] = time.monotonic() - began_at

        before = {node.name: _updates(found, node) for node in found.nodes}
        small = [unique("small") for _ in range(3)]
        began_at = time.monotonic()
        for name in small:
            lab.objects.create_batch_pod(BatchPod(name=name, cpu_milli=2000, memory_bytes=2 * GIB))
        assert len(set(_wait_bound(found, small).values())) == 1
        figures["small_pods_scheduled_seconds"] = time.monotonic() - began_at
        steps = {node.name: _updates(found, node) - before[node.name] for node in found.nodes}
        assert max(steps.values()) <= _MOST_UPDATES
        assert min(steps.values()) == 0

        large = unique("large")
        began_at = time.monotonic()
        lab.objects.create_batch_pod(BatchPod(name=large, cpu_milli=15_000, memory_bytes=8 * GIB))
        place = _wait_bound(found, [large])[large]
        figures["large_pod_scheduled_seconds"] = time.monotonic() - began_at
        assert place in {first.name, second.name}
        served = first if place == first.name else second
        _wait_vcores(found, served, _CORES - 15 - _LEFT_TO_KUBERNETES)
        figures["updates_of_the_node_served"] = _updates(found, served) - before[served.name]
        verdict = found.recording.verdict()
    assert found.recording.problems == []
    assert (verdict.violations, verdict.claims_below_use) == ((), ())
    assert application.killed() == []
    record_figures("strict-demand", figures, folder=tmp_path)
