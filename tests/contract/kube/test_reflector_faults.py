# SPDX-License-Identifier: Apache-2.0
"""Test that the mirror survives what happens to connections, servers and objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.sinks import RecordingSink, eventually
from tests.unit.kube.manual_clock import RecordingClock
from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import Credentials, StaticCredentials
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import NODE_METRICS, NODES, Reflector, ReflectorOptions

QUICK = ReflectorOptions(random=lambda: 0.0, unavailable_retry_seconds=0.05, patience_seconds=0.0)
Sink = RecordingSink[str | None]


def _annotation(node: Node) -> str | None:
    return node.metadata.annotations.get("k")


def _set(server: EmbeddedKubernetes, name: str, text: str) -> None:
    server.objects.merge("nodes", name, {"metadata": {"annotations": {"k": text}}})


@asynccontextmanager
async def _running(reflector: Reflector[Any, Any]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def sink() -> Sink:
    return RecordingSink()


@pytest.fixture
def reflector(server: EmbeddedKubernetes, client: KubeClient, sink: Sink) -> Reflector[Node, str | None]:
    server.objects.create_node("a", annotations={"k": "0"})
    return Reflector(client, NODES, reduce=_annotation, sink=sink, options=QUICK)


async def test_a_connection_cut_inside_a_line_loses_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b'{"type":"MODIFIED","object":{"metadata":{"name":"a","res', then_cut=True, times=3)
    async with _running(reflector):
        await reflector.wait_synced()
        for number in range(1, 50):
            _set(server, "a", str(number))
            await asyncio.sleep(0)
        await eventually(lambda: sink.items["a"] == "49")
    assert sink.versions("a") == [str(number) for number in range(1, 50)]
    assert sink.lists == 1
    assert server.calls.count("watch", "nodes") == 4


async def test_connections_that_are_reset_again_and_again_lose_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with _running(reflector):
        await reflector.wait_synced()
        for number in range(1, 6):
            _set(server, "a", str(number))
            server.cut_connections()
            await eventually(lambda number=number: sink.items["a"] == str(number))  # type: ignore[misc]
    assert sink.versions("a") == ["1", "2", "3", "4", "5"]
    assert sink.lists == 1


async def test_a_silent_watch_is_opened_again(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    silence = server.faults.silence(verb="watch", times=2)
    settings = KubernetesSettings(watch_silence_timeout_seconds=0.2)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, options=QUICK)
        async with _running(reflector):
            await reflector.wait_synced()
            _set(server, "a", "1")
            await eventually(lambda: sink.items["a"] == "1")
    assert silence.hits == 2
    assert sink.lists == 1


async def test_bookmarks_keep_a_quiet_watch_from_being_silent_or_too_old(
    server: EmbeddedKubernetes, sink: Sink
) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    settings = KubernetesSettings(watch_silence_timeout_seconds=1.0)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, options=QUICK)
        async with _running(reflector):
            await reflector.wait_synced()
            server.objects.create_pod("p")  # the version goes on without any change of a node
            seen = reflector.stats.events
            await eventually(lambda: reflector.stats.events >= seen + 2)
            server.compact()
            server.cut_connections()
            _set(server, "a", "1")
            await eventually(lambda: sink.items["a"] == "1")
    assert sink.lists == 1


async def test_a_version_that_is_too_old_is_answered_by_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with _running(reflector):
        await reflector.wait_synced()
        server.objects.create_node("gone")
        await eventually(lambda: "gone" in sink.items)
        await server.stop_api_server()
        server.objects.delete("nodes", "gone")
        _set(server, "a", "1")
        server.compact()
        await server.start_api_server()
        await eventually(lambda: sink.lists == 2)
    assert sink.items == {"a": "1"}


async def test_410_at_once_again_and_again_does_not_spin(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    line = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    server.faults.watch_lines(line, times=5)
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token)) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=clock, options=QUICK)
        async with _running(reflector):
            await eventually(lambda: sink.lists == 6)
    assert clock.sleeps[:5] == [0.1, 0.2, 0.4, 0.8, 1.6]


async def test_the_mirror_goes_on_after_a_restart_of_the_api_server(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with _running(reflector):
        await reflector.wait_synced()
        await server.stop_api_server()
        _set(server, "a", "1")
        await server.start_api_server()
        await eventually(lambda: sink.items["a"] == "1")
    assert sink.versions("a") == ["1"]
    assert sink.lists == 1


async def test_a_list_that_fails_is_tried_with_growing_waits(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a")
    server.faults.refuse(500, verb="list", times=12)
    inside_a_call, between_rounds = RecordingClock(), RecordingClock()
    credentials = StaticCredentials(server.url, server.token)
    async with KubeClient(credentials, clock=inside_a_call) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=between_rounds, options=QUICK)
        async with _running(reflector):
            await eventually(lambda: reflector.has_synced)
    assert server.calls.count("list", "nodes") == 13
    assert len(inside_a_call.sleeps) == 8
    assert between_rounds.sleeps[:4] == [0.1, 0.2, 0.4, 0.8]


async def test_a_watch_that_ends_at_once_is_opened_with_growing_waits(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a")
    server.faults.body(b"", verb="watch", times=5)
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token)) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=clock, options=QUICK)
        async with _running(reflector):
            await eventually(lambda: server.calls.count("watch") == 6)
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert sink.lists == 1


async def test_a_watch_whose_time_is_over_is_opened_again_at_once(server: EmbeddedKubernetes, sink: Sink) -> None:
    server.objects.create_node("a", annotations={"k": "0"})
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token)) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=clock, options=QUICK)
        async with _running(reflector):
            for number in range(1, 4):
                await eventually(lambda number=number: server.calls.count("watch") == number)  # type: ignore[misc]
                _set(server, "a", str(number))
                await eventually(lambda number=number: sink.items["a"] == str(number))  # type: ignore[misc]
                clock.now += 300
                server.end_watches()
            await eventually(lambda: server.calls.count("watch") == 4)
    assert clock.sleeps == []
    assert sink.lists == 1


async def test_credentials_that_are_missing_for_a_while_cost_only_time(server: EmbeddedKubernetes, sink: Sink) -> None:
    class Missing:
        left = 3

        async def load(self) -> Credentials:
            if self.left:
                self.left -= 1
                raise ConfigError("the token file is empty")
            return await StaticCredentials(server.url, server.token).load()

    server.objects.create_node("a", annotations={"k": "0"})
    clock = RecordingClock()
    async with KubeClient(Missing()) as client:
        reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=clock, options=QUICK)
        async with _running(reflector):
            await reflector.wait_synced()
    assert clock.sleeps == [0.1, 0.2, 0.4]
    assert reflector.last_error == "the token file is empty"


async def test_a_watch_that_the_server_cannot_serve_ends_in_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.refuse(500, verb="watch", times=3)
    async with _running(reflector):
        await eventually(lambda: sink.lists == 2)
    assert server.calls.count("watch", "nodes") >= 3


async def test_a_line_that_is_no_event_is_reported_and_ends_in_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b"\x00garbage\n")
    async with _running(reflector):
        await eventually(lambda: sink.lists == 2)
        _set(server, "a", "1")
        await eventually(lambda: sink.items["a"] == "1")
    assert [key for key, _ in sink.broken] == [""]


async def test_a_line_above_the_bound_ends_in_a_new_list_and_not_in_memory(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.watch_lines(b"x" * (17 * 1024 * 1024))
    async with _running(reflector):
        await eventually(lambda: sink.lists == 2)
    assert reflector.stats.failures >= 1


async def test_a_line_far_above_any_buffer_is_delivered(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with _running(reflector):
        await reflector.wait_synced()
        node = server.objects.get("nodes", "a")
        node["metadata"]["annotations"]["k"] = "x" * (4 * 1024 * 1024)
        server.objects.put_raw("nodes", "a", node)
        _set(server, "a", "after")
        await eventually(lambda: sink.items["a"] == "after")
    assert [len(text or "") for text in sink.versions("a")] == [4 * 1024 * 1024, 5]


async def test_an_object_that_cannot_be_decoded_stops_nothing(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    bad = {"metadata": {"name": "bad", "annotations": {"k": 5}}, "apiVersion": "v1", "kind": "Node"}
    server.objects.put_raw("nodes", "bad", bad)
    async with _running(reflector):
        await reflector.wait_synced()
        assert sink.items == {"a": "0"}
        assert [key for key, _ in sink.broken] == ["bad"]
        server.objects.put_raw("nodes", "bad", {**bad, "spec": {"unschedulable": True}})
        _set(server, "a", "1")
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
    async with _running(reflector):
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
    reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, options=QUICK)
    async with _running(reflector):
        await reflector.wait_synced()
        _set(server, "a", "1")
        await eventually(lambda: sink.items == {"a": "1"})
        assert sink.lists == 2
    assert "a fault of the program" in caplog.text


async def test_a_kind_that_appears_later_is_mirrored_then(client: KubeClient) -> None:
    async with EmbeddedKubernetes(node_metrics=False) as server:
        sink: Sink = RecordingSink()
        async with KubeClient(StaticCredentials(server.url, server.token)) as opened:
            reflector = Reflector(
                opened, NODE_METRICS, reduce=lambda metric: metric.status.updateTime, sink=sink, options=QUICK
            )
            async with _running(reflector):
                await eventually(lambda: len(sink.reasons) >= 2)
                assert not reflector.has_synced
                server.serve_node_metrics()
                server.objects.set_node_metric("a", "2026-01-02T03:04:05Z")
                await eventually(lambda: sink.items == {"a": "2026-01-02T03:04:05Z"})
                server.stop_serving_node_metrics()
                server.cut_connections()
                count = len(sink.reasons)
                await eventually(lambda: len(sink.reasons) > count)


async def test_a_forbidden_kind_is_reported_and_tried_again(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.forbid("nodes", "list")
    async with _running(reflector):
        await eventually(lambda: len(sink.reasons) >= 2)
        assert 'User "admin" cannot list resource "nodes"' in sink.reasons[0]
        server.allow("nodes", "list")
        await eventually(lambda: sink.items == {"a": "0"})


async def test_a_refusal_after_a_restart_of_the_server_is_tried_again_soon_and_not_told(
    client: KubeClient, server: EmbeddedKubernetes, sink: Sink
) -> None:
    reflector = Reflector(
        client,
        NODES,
        reduce=_annotation,
        sink=sink,
        options=ReflectorOptions(random=lambda: 0.0, unavailable_retry_seconds=600.0, patience_seconds=600.0),
    )
    async with _running(reflector):
        await reflector.wait_synced()
        for verb in ("list", "watch"):
            server.forbid("nodes", verb)
        server.cut_connections()
        await eventually(lambda: "403" in (reflector.last_error or ""))
        contact, failures = reflector.last_contact, reflector.stats.failures
        await eventually(lambda: reflector.stats.failures >= failures + 3)
        assert reflector.last_contact == contact  # what is known grows old meanwhile
        for verb in ("list", "watch"):
            server.allow("nodes", verb)
        server.objects.create_node("b", annotations={"k": "1"})
        await eventually(lambda: "b" in sink.items)
        assert sink.reasons == []


async def test_a_continue_token_that_expires_starts_the_list_again(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    for number in range(120):
        server.objects.create_node(f"n{number:03}")
    server.faults.delay(0.0, verb="list")  # lets the first page pass
    server.faults.refuse(410, reason="Expired", verb="list")
    async with _running(reflector):
        await reflector.wait_synced()
    assert len(sink.items) == 121
    assert sink.lists == 1
    assert server.calls.count("list", "nodes") == 5


async def test_the_last_contact_is_known(server: EmbeddedKubernetes, client: KubeClient, sink: Sink) -> None:
    clock = RecordingClock()
    reflector = Reflector(client, NODES, reduce=_annotation, sink=sink, clock=clock, options=QUICK)
    assert reflector.last_contact is None
    async with _running(reflector):
        await reflector.wait_synced()
        clock.now += 50
        server.objects.create_node("a")
        await eventually(lambda: "a" in sink.items)
        assert reflector.last_contact == clock.now


async def test_a_thousand_changes_arrive_complete_and_in_order(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with _running(reflector):
        await reflector.wait_synced()
        for number in range(1000):
            _set(server, "a", f"v{number}")
            if number % 37 == 0:
                await asyncio.sleep(0)
        await eventually(lambda: sink.items["a"] == "v999")
    assert sink.versions("a") == [f"v{number}" for number in range(1000)]
