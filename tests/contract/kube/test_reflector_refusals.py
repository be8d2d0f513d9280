# SPDX-License-Identifier: Apache-2.0
"""Test that the mirror survives what servers refuse, and their restarts."""

from __future__ import annotations

import json

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.mirroring import QUICK, Sink, annotation, running, set_annotation
from tests.contract.kube.sinks import RecordingSink, eventually
from tests.unit.kube.manual_clock import RecordingClock
from yarn_copilot.errors import ConfigError
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import Credentials, StaticCredentials
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import NODE_METRICS, NODES, Reflector, ReflectorOptions


async def test_a_version_that_is_too_old_is_answered_by_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with running(reflector):
        await reflector.wait_synced()
        server.objects.create_node("gone")
        await eventually(lambda: "gone" in sink.items)
        await server.stop_api_server()
        server.objects.delete("nodes", "gone")
        set_annotation(server, "a", "1")
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
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=clock, options=QUICK)
        async with running(reflector):
            await eventually(lambda: sink.lists == 6)
    assert clock.sleeps[:5] == [0.1, 0.2, 0.4, 0.8, 1.6]


async def test_the_mirror_goes_on_after_a_restart_of_the_api_server(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    async with running(reflector):
        await reflector.wait_synced()
        await server.stop_api_server()
        set_annotation(server, "a", "1")
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
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=between_rounds, options=QUICK)
        async with running(reflector):
            await eventually(lambda: reflector.has_synced)
    assert server.calls.count("list", "nodes") == 13
    assert len(inside_a_call.sleeps) == 8
    assert between_rounds.sleeps[:4] == [0.1, 0.2, 0.4, 0.8]


async def test_a_watch_that_the_server_cannot_serve_ends_in_a_new_list(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    server.faults.refuse(500, verb="watch", times=3)
    async with running(reflector):
        await eventually(lambda: sink.lists == 2)
    assert server.calls.count("watch", "nodes") >= 3


async def test_a_continue_token_that_expires_starts_the_list_again(
    server: EmbeddedKubernetes, sink: Sink, reflector: Reflector[Node, str | None]
) -> None:
    for number in range(120):
        server.objects.create_node(f"n{number:03}")
    server.faults.delay(0.0, verb="list")  # lets the first page pass
    server.faults.refuse(410, reason="Expired", verb="list")
    async with running(reflector):
        await reflector.wait_synced()
    assert len(sink.items) == 121
    assert sink.lists == 1
    assert server.calls.count("list", "nodes") == 5


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
        reflector = Reflector(client, NODES, reduce=annotation, sink=sink, clock=clock, options=QUICK)
        async with running(reflector):
            await reflector.wait_synced()
    assert clock.sleeps == [0.1, 0.2, 0.4]
    assert reflector.last_error == "the token file is empty"


async def test_a_kind_that_appears_later_is_mirrored_then(client: KubeClient) -> None:
    async with EmbeddedKubernetes(node_metrics=False) as server:
        sink: Sink = RecordingSink()
        async with KubeClient(StaticCredentials(server.url, server.token)) as opened:
            reflector = Reflector(
                opened, NODE_METRICS, reduce=lambda metric: metric.status.updateTime, sink=sink, options=QUICK
            )
            async with running(reflector):
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
    async with running(reflector):
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
        reduce=annotation,
        sink=sink,
        options=ReflectorOptions(random=lambda: 0.0, unavailable_retry_seconds=600.0, patience_seconds=600.0),
    )
    async with running(reflector):
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
