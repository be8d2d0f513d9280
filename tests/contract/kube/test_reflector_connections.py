# SPDX-License-Identifier: Apache-2.0
"""Test that the mirror survives what happens to connections and watches."""

from __future__ import annotations

import asyncio

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.mirroring import QUICK, Sink, annotation, running, set_annotation
from tests.contract.kube.sinks import eventually
from tests.unit.kube.manual_clock import RecordingClock
from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import StaticCredentials
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import NODES, Reflector


async def test_a_connection_cut_inside_a_line_loses_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b'{"type":"MODIFIED","object":{"metadata":{"name":"a","res', then_cut=True, times=3)
    async with running(reflector):
        await reflector.wait_synced()
        for number in range(1, 50):
            set_annotation(server, "a", str(number))
            await asyncio.sleep(0)
        await eventually(lambda: sink.items["a"] == "49")
    assert sink.versions("a") == [str(number) for number in range(1, 50)]
    assert sink.lists == 1
    assert server.calls.count("watch", "nodes") == 4


async def test_connections_that_are_reset_again_and_again_lose_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with running(reflector):
        await reflector.wait_synced()
        for number in range(1, 6):
            set_annotation(server, "a", str(number))
            server.cut_connections()
            await eventually(lambda number=number: sink.items["a"] == str(number))  # type: ignore[misc]
    assert sink.versions("a") == ["1", "2", "3", "4", "5"]
    assert sink.lists == 1


async def test_a_silent_watch_is_opened_again(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    silence = server.faults.silence(verb="watch", times=2)
    settings = KubernetesSettings(watch_silence_timeout_seconds=0.2)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, options=QUICK)
        async with running(reflector):
            await reflector.wait_synced()
            set_annotation(server, "a", "1")
            await eventually(lambda: sink.items["a"] == "1")
    assert silence.hits == 2
    assert sink.lists == 1


async def test_bookmarks_keep_a_quiet_watch_from_being_silent_or_too_old(
    server: EmbeddedKubernetes, sink: Sink
) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    settings = KubernetesSettings(watch_silence_timeout_seconds=1.0)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, options=QUICK)
        async with running(reflector):
            await reflector.wait_synced()
            server.objects.create_pod("p")  # the version goes on without any change of a node
            seen = reflector.stats.events
            await eventually(lambda: reflector.stats.events >= seen + 2)
            server.compact()
            server.cut_connections()
            set_annotation(server, "a", "1")
            await eventually(lambda: sink.items["a"] == "1")
    assert sink.lists == 1


async def test_a_watch_that_ends_at_once_is_opened_with_growing_waits(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a")
    server.faults.body(b"", verb="watch", times=5)
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token)) as client:
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=clock, options=QUICK)
        async with running(reflector):
            await eventually(lambda: server.calls.count("watch") == 6)
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert sink.lists == 1


async def test_a_watch_whose_time_is_over_is_opened_again_at_once(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token)) as client:
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=clock, options=QUICK)
        async with running(reflector):
            for number in range(1, 4):
                await eventually(lambda number=number: server.calls.count("watch") == number)  # type: ignore[misc]
                set_annotation(server, "a", str(number))
                await eventually(lambda number=number: sink.items["a"] == str(number))  # type: ignore[misc]
                clock.now += 300
                server.end_watches()
            await eventually(lambda: server.calls.count("watch") == 4)
    assert clock.sleeps == []
    assert sink.lists == 1


async def test_a_line_far_above_any_buffer_is_delivered(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with running(reflector):
        await reflector.wait_synced()
        node = server.objects.get("nodes", "a")
        node["metadata"]["annotations"]["k"] = "x" * (4 * 1024 * 1024)
        server.objects.put_raw("nodes", "a", node)
        set_annotation(server, "a", "after")
        await eventually(lambda: sink.items["a"] == "after")
    assert [len(text or "") for text in sink.versions("a")] == [4 * 1024 * 1024, 5]


async def test_the_last_contact_is_known(server: EmbeddedKubernetes, client: KubeClient, sink: Sink) -> None:
    clock = RecordingClock()
    reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=clock, options=QUICK)
    assert reflector.last_contact is None
    async with running(reflector):
        await reflector.wait_synced()
        clock.now += 50
        server.objects.create_node("a")
        await eventually(lambda: "a" in sink.items)
        assert reflector.last_contact == clock.now


async def test_a_thousand_changes_arrive_complete_and_in_order(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with running(reflector):
        await reflector.wait_synced()
        for number in range(1000):
            set_annotation(server, "a", f"v{number}")
            if number % 37 == 0:
                await asyncio.sleep(0)
        await eventually(lambda: sink.items["a"] == "v999")
    assert sink.versions("a") == [f"v{number}" for number in range(1000)]
