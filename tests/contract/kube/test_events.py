# SPDX-License-Identifier: Apache-2.0
"""Test that Events are written, folded and bounded, and never trouble the caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.sinks import eventually
from tests.unit.kube.manual_clock import RecordingClock
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.events import EventRecorder, ObjectReference

POD = ObjectReference("Pod", "yarn-copilot-0", "koordinator-system")
Start = Callable[..., EventRecorder]


@pytest.fixture
async def start(client: KubeClient) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    def _start(**more: Any) -> EventRecorder:
        recorder = EventRecorder(client, about=POD, **more)
        tasks.append(asyncio.ensure_future(recorder.run()))
        return recorder

    yield _start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _events(server: EmbeddedKubernetes) -> list[dict[str, Any]]:
    return list(server.objects.all("events").values())


async def test_an_event_on_a_node_is_what_kubectl_describe_looks_for(server: EmbeddedKubernetes, start: Start) -> None:
    start().node_event("n1", type="Warning", reason="OriginMalformed", message="what is wrong")
    await eventually(lambda: len(_events(server)) == 1)
    event = _events(server)[0]
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"] == {"kind": "Node", "name": "n1", "apiVersion": "v1", "uid": "n1"}
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "OriginMalformed", "what is wrong")
    assert event["source"]["component"] == event["reportingComponent"] == "yarn-copilot"
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"]


async def test_an_event_on_the_controller_is_in_its_namespace(server: EmbeddedKubernetes, start: Start) -> None:
    start().controller_event(type="Normal", reason="BecameLeader", message="m")
    await eventually(lambda: len(_events(server)) == 1)
    event = _events(server)[0]
    assert event["metadata"]["namespace"] == "koordinator-system"
    assert event["involvedObject"]["name"] == "yarn-copilot-0"


async def test_repetitions_are_folded_into_one_event(server: EmbeddedKubernetes, start: Start) -> None:
    recorder = start()
    for _ in range(5):
        recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: [event["count"] for event in _events(server)] == [5])
    recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: [event["count"] for event in _events(server)] == [6])
    recorder.node_event("n1", type="Normal", reason="R", message="other")
    recorder.node_event("n2", type="Normal", reason="R", message="same")
    await eventually(lambda: len(_events(server)) == 3)
    assert server.calls.count("create", "events") == 3
    assert server.calls.count("patch", "events") == 1


async def test_a_repetition_of_an_expired_event_is_a_new_event(server: EmbeddedKubernetes, start: Start) -> None:
    recorder = start()
    recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: len(_events(server)) == 1)
    server.objects.delete("events", next(iter(server.objects.all("events"))))
    recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: [event["count"] for event in _events(server)] == [1])


async def test_a_repetition_long_after_is_a_new_event(server: EmbeddedKubernetes, start: Start) -> None:
    clock = RecordingClock()
    recorder = start(clock=clock)
    recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: recorder.written == 1)
    clock.now += 601
    recorder.node_event("n1", type="Normal", reason="R", message="same")
    await eventually(lambda: len(_events(server)) == 2)


async def test_a_flood_is_written_at_the_rate_and_bounded_by_the_queue(
    server: EmbeddedKubernetes, start: Start
) -> None:
    clock = RecordingClock()
    recorder = start(clock=clock, queue_size=50, per_second=5.0, burst=10)
    for number in range(80):
        recorder.node_event("n1", type="Normal", reason="R", message=str(number))
    assert (recorder.waiting, recorder.dropped) == (50, 30)
    await eventually(lambda: recorder.written == 50)
    assert len(clock.sleeps) == 40
    assert sum(clock.sleeps) == pytest.approx(8.0)


async def test_a_server_that_refuses_costs_only_the_event(server: EmbeddedKubernetes, start: Start) -> None:
    server.forbid("events")
    recorder = start()
    recorder.node_event("n1", type="Normal", reason="R", message="lost")
    await eventually(lambda: recorder.dropped == 1)
    server.allow("events")
    recorder.node_event("n1", type="Normal", reason="R", message="kept")
    await eventually(lambda: [event["message"] for event in _events(server)] == ["kept"])


async def test_a_long_message_is_cut(server: EmbeddedKubernetes, start: Start) -> None:
    start().node_event("n" * 253, type="Normal", reason="R", message="x" * 5000)
    await eventually(lambda: len(_events(server)) == 1)
    event = _events(server)[0]
    assert len(event["message"]) == 1024
    assert len(event["metadata"]["name"]) <= 253


async def test_what_waits_is_written_at_the_end(server: EmbeddedKubernetes, client: KubeClient) -> None:
    recorder = EventRecorder(client, about=POD)
    recorder.controller_event(type="Normal", reason="LostLeadership", message="m")
    await recorder.drain(5.0)
    assert len(_events(server)) == 1
    server.faults.silence(verb="create", times=None)
    recorder.controller_event(type="Normal", reason="LostLeadership", message="other")
    await recorder.drain(0.05)
    assert len(_events(server)) == 1
