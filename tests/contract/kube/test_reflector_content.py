# SPDX-License-Identifier: Apache-2.0
"""Test that the mirror survives lines and objects that it cannot read, and faults of whoever takes them."""

from __future__ import annotations

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.mirroring import QUICK, Sink, annotation, running, set_annotation
from tests.contract.kube.sinks import RecordingSink, eventually
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import NODES, Reflector


async def test_a_line_that_is_no_event_is_reported_and_ends_in_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b"\x00garbage\n")
    async with running(reflector):
        await eventually(lambda: sink.lists == 2)
        set_annotation(server, "a", "1")
        await eventually(lambda: sink.items["a"] == "1")
    assert [key for key, _ in sink.broken] == [""]


async def test_a_line_above_the_bound_ends_in_a_new_list_and_not_in_memory(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b"x" * (17 * 1024 * 1024))
    async with running(reflector):
        await eventually(lambda: sink.lists == 2)
    assert reflector.stats.failures >= 1


async def test_an_object_that_cannot_be_decoded_stops_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    bad = {"metadata": {"name": "bad", "annotations": {"k": 5}}, "apiVersion": "v1", "kind": "Node"}
    server.objects.put_raw("nodes", "bad", bad)
    async with running(reflector):
        await reflector.wait_synced()
        assert sink.items == {"a": "0"}
        assert [key for key, _ in sink.broken] == ["bad"]
        server.objects.put_raw("nodes", "bad", {**bad, "spec": {"unschedulable": True}})
        set_annotation(server, "a", "1")
        await eventually(lambda: sink.items["a"] == "1")
        assert [key for key, _ in sink.broken] == ["bad", "bad"]
        server.objects.put_raw("nodes", "bad", {**bad, "metadata": {"name": "bad"}})
        await eventually(lambda: "bad" in sink.items)
        server.objects.put_raw("nodes", "bad", bad)
        server.objects.delete("nodes", "bad")
        await eventually(lambda: "bad" not in sink.items)
    assert sink.lists == 1


async def test_an_object_that_cannot_be_reduced_is_reported(
    server: EmbeddedKubernetes, client: KubeClient, sink: Sink
) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    server.objects.create_node("b")
    reflector = Reflector(client, NODES, reduce=lambda node: node.metadata.annotations["k"], sink=sink)
    async with running(reflector):
        await reflector.wait_synced()
    assert sink.items == {"a": "0"}
    assert sink.broken == [("b", "KeyError: 'k'")]


async def test_a_fault_of_the_sink_is_logged_and_ends_in_a_new_list(
    server: EmbeddedKubernetes, client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    class FailingOnce(RecordingSink[str | None]):
        failed = False

        def upserted(self, key: str, item: str | None) -> None:
            if not self.failed:
                self.failed = True
                raise ValueError("a fault of the program")
            super().upserted(key, item)

    server.objects.create_node("a", annotations={"k": "0"})
    sink = FailingOnce()
    reflector = Reflector(client, NODES, reduce=annotation, sink=sink, options=QUICK)
    async with running(reflector):
        await reflector.wait_synced()
        set_annotation(server, "a", "1")
        await eventually(lambda: sink.items == {"a": "1"})
        assert sink.lists == 2
    assert "a fault of the program" in caplog.text
