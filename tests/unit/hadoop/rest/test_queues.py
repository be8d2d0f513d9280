# SPDX-License-Identifier: Apache-2.0
"""Test reading queues and partitions, from answers recorded of real ResourceManagers and from written ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn_copilot.hadoop import versions
from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import Resource
from yarn_copilot.hadoop.rest import queues

GOLDEN = Path(__file__).resolve().parents[3] / "data" / "golden"


@pytest.mark.parametrize("version", versions.TESTED)
def test_recorded_queues_of_the_capacity_scheduler_are_read(version: str) -> None:
    document = json.loads((GOLDEN / f"rest-scheduler-{version}.json").read_text())

    root = queues.queue_tree(document)

    assert sorted(child.path for child in root.children) == ["root.batch", "root.interactive"]
    etl = queues.find_queue(root, "root.batch.etl")
    assert etl is not None
    assert etl is queues.find_queue(root, "etl")
    assert (etl.capacity, etl.maximum_capacity, etl.state) == (0.7, 1.0, "RUNNING")
    assert (etl.allocated, etl.pending) == (Resource(2048, 4), Resource(8192, 16))
    assert (root.allocated, root.pending) == (Resource(2048, 4), Resource(8192, 16))
    assert (root.pending_containers, root.applications_running) == (16, 1)
    assert queues.partition_use(document) == {
        "": queues.PartitionUse(used=Resource(2048, 4), reserved=Resource(0, 0), pending=Resource(8192, 16))
    }


@pytest.mark.parametrize("version", versions.TESTED)
def test_recorded_queues_of_the_fair_scheduler_are_read(version: str) -> None:
    document = json.loads((GOLDEN / f"rest-fair-scheduler-{version}.json").read_text())

    root = queues.queue_tree(document)

    etl = queues.find_queue(root, "root.batch.etl")
    assert etl is not None
    assert (etl.maximum_capacity, etl.current_capacity, etl.state) == (1.0, 1.0, "RUNNING")
    for queue in (root, etl):
        assert (queue.allocated, queue.pending) == (Resource(2048, 4), Resource(8192, 16))
        assert (queue.allocated_containers, queue.pending_containers, queue.applications_running) == (4, 16, 1)
    with pytest.raises(ProtocolViolationError, match="only the CapacityScheduler"):
        queues.partition_use(document)


def vector(memory: int) -> dict[str, int]:
    return {"memory": memory, "vCores": 1}


def capacity(*children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"queueName": "root", "type": "capacityScheduler", "queues": {"queue": list(children)}, **fields}


def leaf(name: str, **pending: int) -> dict[str, Any]:
    """Make a leaf queue that waits for so many MiB in each partition; `default` is the one without a label."""
    uses = [
        {"partitionName": "" if label == "default" else label, "used": vector(1), "pending": vector(memory)}
        for label, memory in pending.items()
    ]
    return {"queueName": name, "resources": {"resourceUsagesByPartition": uses}}


def test_pending_resources_of_labelled_partitions_are_summed_over_leaves() -> None:
    document = scheduler(capacity(leaf("a", default=1, gpu=10), leaf("b", gpu=100)))
    found = queues.partition_use(document)
    assert found[""].pending == Resource(1, 1)
    assert found["gpu"].pending == Resource(110, 2)
    assert found["gpu"].used == Resource(2, 2)


def scheduler(info: dict[str, Any]) -> dict[str, Any]:
    return {"scheduler": {"schedulerInfo": info}}


def test_a_single_queue_may_come_as_an_object() -> None:
    root = queues.queue_tree(scheduler({"type": "capacityScheduler", "queues": {"queue": {"queueName": "only"}}}))
    assert [child.path for child in root.children] == ["root.only"]


def test_queues_of_the_fair_scheduler_are_read() -> None:
    shares = {"clusterResources": vector(100), "maxResources": vector(1000), "steadyFairResources": vector(50)}
    child = {
        "queueName": "root.a", "usedResources": vector(25), "demandResources": vector(40), "numActiveApps": 2,
        "numPendingApps": 1, "pendingContainers": 3, **shares,
    }  # fmt: skip
    document = scheduler(
        {"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": {"queue": [child]}, **shares}}
    )
    found = queues.find_queue(queues.queue_tree(document), "a")
    assert found is not None
    assert (found.path, found.capacity, found.maximum_capacity, found.current_capacity) == ("root.a", 0.5, 1.0, 0.25)
    assert found.pending == Resource(15, 0)
    assert (found.applications_running, found.applications_pending, found.pending_containers) == (2, 1, 3)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({}, id="empty"),
        pytest.param({"scheduler": None}, id="null"),
        pytest.param(scheduler({"type": "fifoScheduler", "capacity": 1.0}), id="fifo"),
        pytest.param(scheduler({"type": "capacityScheduler", "queues": {"queue": [{}]}}), id="queue without name"),
        pytest.param(scheduler({"type": "capacityScheduler", "capacity": "much"}), id="capacity is a word"),
    ],
)
def test_what_cannot_be_read_is_an_error_not_an_empty_tree(document: object) -> None:
    with pytest.raises(ProtocolViolationError):
        queues.queue_tree(document)


def test_demand_by_partition_is_unknown_with_another_scheduler() -> None:
    with pytest.raises(ProtocolViolationError, match="only the CapacityScheduler"):
        queues.partition_use(scheduler({"type": "fairScheduler"}))


def test_queues_nested_without_end_are_refused() -> None:
    info: dict[str, Any] = {"queueName": "q"}
    for _ in range(100):
        info = {"queueName": "q", "queues": {"queue": info}}
    with pytest.raises(ProtocolViolationError, match="nested more than 64 deep"):
        queues.queue_tree(scheduler({**info, "type": "capacityScheduler"}))
