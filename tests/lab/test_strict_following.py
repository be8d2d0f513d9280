# SPDX-License-Identifier: Apache-2.0
"""Show on real servers that mode strict moves the boundary in its steps, both ways, and how long each takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batch_resources.resources import BatchResources
from lab.cluster import Lab
from lab.judge.events import CapacityEvent, Event, NodeVersion
from lab.judge.judging import in_order
from lab.kubernetes.bodies import BatchPod
from tests.lab.bridge import GIB, SETTLED_SECONDS, BridgedNode, Unique
from tests.lab.figures import record_figures
from tests.lab.strict import SETTLE_SECONDS, StrictLab, strict_lab

_CONVERGED_SECONDS = 60.0
_ORDER_SECONDS = 0.25


def _wait_converged(found: StrictLab, wanted: Callable[[int, int], bool] = lambda memory, vcores: True) -> float:
    began_at = time.monotonic()
    for node in found.nodes:

        def is_there(node: BridgedNode = node) -> bool:
            memory, vcores = found.bridge.capacity(node)
            return found.has_converged(node) and wanted(memory, vcores)

        found.bridge.wait(is_there, f"{node.name} has converged", seconds=_CONVERGED_SECONDS)
    return time.monotonic() - began_at


def _of_node(events: list[Event], node: BridgedNode) -> Iterator[NodeVersion | CapacityEvent]:
    for event in events:
        if isinstance(event, NodeVersion) and event.node == node.name:
            yield event
        if isinstance(event, CapacityEvent) and event.manager == node.node_id:
            yield event


def _broken_steps(found: StrictLab, node: BridgedNode, floor: BatchResources) -> list[str]:
    """Go through the log of a node and name every growth of capacity, or fall of the claim, that came too early."""
    faults: list[str] = []
    capacity, shown, fell_at = floor, None, 0.0
    for event in _of_node(in_order(found.recording.events()), node):
        if isinstance(event, CapacityEvent):
            before, capacity = capacity, event.capacity
            if shown is None or before == capacity or capacity.fits_in(before):
                continue
            if not capacity.fits_in(shown.claimed):
                faults.append(f"C became {capacity} with T={shown.claimed}")
            if shown.origin is None or not (shown.allocatable + shown.claimed).fits_in(shown.origin):
                faults.append(f"C became {capacity} with A={shown.allocatable} T={shown.claimed} O={shown.origin}")
            if event.at - fell_at < SETTLE_SECONDS - _ORDER_SECONDS:
                faults.append(f"C became {capacity} {event.at - fell_at:.3f} s after a fall of A")
            continue
        if shown is not None and not shown.allocatable.fits_in(event.allocatable):
            fell_at = event.at
        if shown is not None and not capacity.fits_in(event.claimed) and event.claimed != shown.claimed:
            faults.append(f"T became {event.claimed} with C={capacity}")
        shown = event
    return faults


@pytest.mark.timeout(400)
def test_the_boundary_moves_both_ways_in_the_steps_that_sell_no_unit_twice(
    lab: Lab, unique: Unique, tmp_path: Path
) -> None:
    with strict_lab(lab, unique) as found:
        found.bridge.start()
        first = _wait_converged(found, lambda memory, vcores: vcores > 1)
        node = found.nodes[0]
        application = lab.submit()
        application.ask(count=4, memory_mib=1024, node=node.node_id)
        application.wait_running(4)
        for each in found.nodes:
            found.set_origin(each, 12)
        shrink = _wait_converged(found, lambda memory, vcores: vcores < 12)
        for each in found.nodes:
            found.set_origin(each, 28)
        growth = _wait_converged(found, lambda memory, vcores: vcores > 7)
        _, before = found.bridge.capacity(node)
        asked_at = time.monotonic()
        lab.objects.create_batch_pod(
            BatchPod(name=unique("pod"), cpu_milli=10_000, memory_bytes=GIB, node_selector={_HOST_NAME: node.name})
        )
        found.bridge.wait(lambda: found.bridge.capacity(node)[1] < before, "YARN gave way to the pod", seconds=60)
        given_way = time.monotonic() - asked_at
        _wait_converged(found)
        verdict = found.recording.verdict()
        options = lab.yarn.options
        floor = BatchResources(cpu_milli=options.floor_vcores * 1000, memory_bytes=options.floor_memory_mib << 20)
        faults = [fault for each in found.nodes for fault in _broken_steps(found, each, floor)]
    assert found.recording.problems == []
    assert faults == []
    assert (verdict.violations, verdict.claims_below_use) == ((), ())
    assert application.killed() == []
    record_figures(
        "strict-following",
        {
            "nodes": len(found.nodes),
            "settle_seconds": SETTLE_SECONDS,
            "first_convergence_seconds": first,
            "after_fall_of_origin_seconds": shrink,
            "after_rise_of_origin_seconds": growth,
            "pod_to_shrink_seconds": given_way,
        },
        folder=tmp_path,
    )


_HOST_NAME = "kubernetes.io/hostname"


@pytest.mark.timeout(400)
def test_a_controller_that_dies_in_the_middle_of_a_transfer_is_continued_by_the_next_one(
    lab: Lab, unique: Unique
) -> None:
    with strict_lab(lab, unique) as found:
        controller = found.bridge.start()
        for node in found.nodes:
            found.bridge.wait(
                lambda node=node: found.bridge.claim(node) is not None,  # type: ignore[misc]
                "the first step was made",
                seconds=SETTLED_SECONDS,
            )
        controller.sigkill()
        assert all(found.bridge.capacity(node) == (1024, 1) for node in found.nodes)
        controller.start()
        _wait_converged(found, lambda memory, vcores: vcores > 1)
        verdict = found.recording.verdict()
    assert (verdict.violations, verdict.claims_below_use) == ((), ())
