# SPDX-License-Identifier: Apache-2.0
"""Test who lingers, since when, and when that ends."""

from __future__ import annotations

import pytest

from batch_resources.resources import BatchResources
from nm_proxy.containers import NodeContainer
from nm_proxy.lingering.tracking import DEAD_SECONDS, Delays, Lingering, Why, due, total_held, track
from nm_proxy.node_view import NodeManagerView
from nm_proxy.nodemanager.model import Answering, ContainerReport
from tests.unit.nm_proxy.world import container_id, report

DELAYS = Delays(finished_seconds=30, dead_node_manager_seconds=900)
HELD = BatchResources(cpu_milli=2000, memory_bytes=6 << 30)


def container(number: int = 2, *, state: str | None = None, processes: int = 3) -> NodeContainer:
    name = container_id(number)
    known: ContainerReport | None = report(name, state=state) if state else None
    return NodeContainer(
        container_id=name,
        path=name,
        report=known,
        stats=None,
        processes=processes,
        holds=HELD,
        started_at=None,
        is_done=True,
    )


def view(
    answering: Answering = Answering.ANSWERS,
    *,
    since: float = 0.0,
    asked_at: float | None = 1e9,
    is_running: bool | None = None,
    malformed: int = 0,
) -> NodeManagerView:
    return NodeManagerView(
        answering=answering,
        answering_since=since,
        asked_at=asked_at,
        is_running=is_running,
        malformed=malformed,
    )


def seen(
    one: NodeContainer, now: float, *, before: dict[str, Lingering] | None = None, by: NodeManagerView | None = None
) -> dict[str, Lingering]:
    return track(before or {}, [one], by or view(), delays=DELAYS, now=now)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(container(state="RUNNING"), None, id="runs"),
        pytest.param(container(state="KILLING"), None, id="is being killed by the NodeManager"),
        pytest.param(container(state="EXITED_WITH_SUCCESS"), Why.FINISHED, id="finished with processes"),
        pytest.param(container(state="DONE", processes=0), None, id="finished and empty"),
        pytest.param(container(), Why.UNKNOWN, id="unknown"),
        pytest.param(container(processes=0), None, id="unknown and empty"),
    ],
)
def test_tells_who_lingers(one: NodeContainer, why: Why | None) -> None:
    found = seen(one, 10.0)
    assert [item.why for item in found.values()] == ([why] if why else [])


def test_what_lingers_counts_from_the_first_moment_and_is_ended_after_the_delay() -> None:
    first = seen(container(state="DONE"), 100.0)
    assert total_held(first.values()) == HELD
    assert due(first.values(), 100.0) == []
    later = seen(container(state="DONE"), 129.9, before=first)
    assert due(later.values(), 129.9) == []
    assert [one.container_id for one in due(later.values(), 130.0)] == [container_id(2)]


def test_the_delay_starts_again_with_another_reason() -> None:
    finished = seen(container(state="DONE"), 100.0)
    unknown = seen(container(), 120.0, before=finished)
    assert unknown[container_id(2)].since == 120.0


def test_a_container_that_runs_again_does_not_linger() -> None:
    assert seen(container(state="RUNNING"), 120.0, before=seen(container(state="DONE"), 100.0)) == {}


@pytest.mark.parametrize(
    "answering", [Answering.HANGS, Answering.BABBLES, Answering.UNREACHABLE, Answering.NEVER_ASKED]
)
def test_nobody_is_ended_while_the_node_manager_says_nothing(answering: Answering) -> None:
    silent = view(answering)
    assert seen(container(), 1e6, by=silent) == {}
    before = seen(container(state="DONE"), 100.0)
    kept = seen(container(state="DONE"), 1e6, before=before, by=silent)
    assert kept[container_id(2)].since == 100.0
    assert due(kept.values(), 1e6) == []
    assert due(seen(container(state="DONE"), 1e6, before=kept).values(), 1e6) != []


def test_a_restart_of_the_node_manager_ends_nobody() -> None:
    down = view(Answering.REFUSES, since=100.0)
    assert seen(container(state="RUNNING"), 100.0 + DEAD_SECONDS - 1, by=down) == {}
    assert seen(container(), 100.0 + DEAD_SECONDS - 1, by=down) == {}


def test_containers_of_a_dead_node_manager_are_reported_and_ended_later() -> None:
    dead = view(Answering.REFUSES, since=100.0)
    found = seen(container(state="RUNNING"), 100.0 + DEAD_SECONDS, by=dead)
    assert found[container_id(2)].why is Why.NODE_MANAGER_DEAD
    assert due(found.values(), 999.9) == []
    assert due(found.values(), 1000.0) != []


@pytest.mark.parametrize(
    ("asked_at", "is_running", "is_dead"),
    [
        pytest.param(50.0, None, True, id="it answered here before"),
        pytest.param(None, None, False, id="it never answered here, so the address may be wrong"),
        pytest.param(50.0, True, False, id="its process runs"),
        pytest.param(None, True, False, id="its process runs, and the address may be wrong"),
        pytest.param(None, False, True, id="its process is gone"),
    ],
)
def test_nobody_listening_is_a_death_only_by_a_witness(
    asked_at: float | None, is_running: bool | None, is_dead: bool
) -> None:
    silent = view(Answering.REFUSES, since=100.0, asked_at=asked_at, is_running=is_running)
    found = seen(container(state="RUNNING"), 1e6, by=silent)
    assert [one.why for one in due(found.values(), 1e6)] == ([Why.NODE_MANAGER_DEAD] if is_dead else [])


def test_a_container_that_could_not_be_read_is_not_unknown() -> None:
    partly = view(malformed=1)
    assert seen(container(), 10.0, by=partly) == {}
    before = seen(container(), 10.0)
    kept = seen(container(), 1e6, before=before, by=partly)
    assert kept[container_id(2)].since == 10.0
    assert due(kept.values(), 1e6) == []


def test_who_is_missing_is_ended_by_a_list_that_was_asked_for_after_the_delay() -> None:
    first = seen(container(), 100.0, by=view(asked_at=40.0))
    again = seen(container(), 200.0, before=first, by=view(asked_at=129.9))
    assert again[container_id(2)].since == 100.0
    assert due(again.values(), 200.0) == []
    assert due(seen(container(), 200.0, before=again, by=view(asked_at=130.0)).values(), 200.0) != []


def test_the_oldest_is_ended_first() -> None:
    old = seen(container(2, state="DONE"), 10.0)
    both = track(old, [container(3, state="DONE"), container(2, state="DONE")], view(), delays=DELAYS, now=20.0)
    assert [one.container_id for one in due(both.values(), 100.0)] == [container_id(2), container_id(3)]
