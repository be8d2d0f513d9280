# SPDX-License-Identifier: Apache-2.0
"""Test the election over HTTP; its rules are tested on an own clock in tests/unit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.sinks import eventually
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.lease import LeaseElector, LeaseSettings

Start = Callable[[str], LeaseElector]


@pytest.fixture
async def start(client: KubeClient) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    def _start(identity: str) -> LeaseElector:
        settings = LeaseSettings(
            name="yarn-copilot",
            namespace="koordinator-system",
            identity=identity,
            lease_duration_seconds=2,
            renew_deadline_seconds=1.2,
            retry_period_seconds=0.05,
            longest_call_seconds=0.5,
        )
        elector = LeaseElector(client, settings)
        tasks.append(asyncio.ensure_future(elector.run()))
        return elector

    yield _start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_of_two_leads_and_the_other_follows_a_release(server: EmbeddedKubernetes, start: Start) -> None:
    first = start("a")
    await eventually(lambda: first.is_leader)
    second = start("b")
    await eventually(lambda: second.holder == "a")
    assert not second.is_leader
    await first.release()
    assert not first.is_leader
    await eventually(lambda: second.is_leader)
    spec = server.objects.get("leases", "koordinator-system/yarn-copilot")["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


async def test_leadership_ends_and_returns_with_the_api_server(server: EmbeddedKubernetes, start: Start) -> None:
    elector = start("a")
    await eventually(lambda: elector.is_leader)
    await server.stop_api_server()
    await eventually(lambda: not elector.is_leader)
    await server.start_api_server()
    await eventually(lambda: elector.is_leader)
    assert elector.term == 2


async def test_a_short_outage_costs_no_leadership(server: EmbeddedKubernetes, start: Start) -> None:
    elector = start("a")
    await eventually(lambda: elector.is_leader)
    server.faults.refuse(500, verb="update", times=2)
    server.faults.lose_answer(verb="update", times=2)
    server.faults.cut(verb="update", times=2)
    before = server.calls.count("update", "leases")
    await eventually(lambda: server.calls.count("update", "leases") > before + 10)
    assert elector.is_leader
    assert elector.term == 1


async def test_a_lease_that_may_not_be_written_is_never_held(server: EmbeddedKubernetes, start: Start) -> None:
    server.forbid("leases")
    elector = start("a")
    await eventually(lambda: server.calls.count("get", "leases") >= 3)
    assert not elector.is_leader
    server.allow("leases")
    await eventually(lambda: elector.is_leader)
