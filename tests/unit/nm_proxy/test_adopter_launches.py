# SPDX-License-Identifier: Apache-2.0
"""Many containers that start together are moved before anybody looks at all processes, and timed by their moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nm_proxy.nodemanager.pid_files import PidFile
from nm_proxy.nodemanager.processes import ProcessTable
from tests.unit.nm_proxy.world import Node, container_id, report


def prepared(node: Node, *numbers: int) -> None:
    """Make groups with their limits ahead, as when the NodeManager prepares containers."""
    node.tree.prepare_parent(node.place.yarn)
    for number in numbers:
        node.reports[container_id(number)] = report(container_id(number), vcores=1, memory_mib=256)
    node.adopter.expect([container_id(number) for number in numbers], node.view())


def counted_looks(node: Node, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None) -> list[int]:
    """Count the looks at all processes by how many there were; `then` happens before each."""
    sizes: list[int] = []
    table = node.processes.table

    def look() -> ProcessTable:
        then()
        seen = table()
        sizes.append(len(seen.processes))
        return seen

    monkeypatch.setattr(node.processes, "table", look)
    return sizes


def test_who_is_launched_during_a_pass_is_moved_before_its_only_look(
    any_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(any_node, 2, 3, 4)
    first = any_node.launch(2)
    files = any_node.files.scan()
    pids = [first.pid]
    inside_at_looks: list[bool] = []
    looks = counted_looks(
        any_node,
        monkeypatch,
        then=lambda: inside_at_looks.append(all(map(any_node.is_inside, pids, (2, 3, 4)))),
    )
    waiting = [3, 4]

    def more() -> dict[str, PidFile]:
        if not waiting:
            return {}
        number = waiting.pop(0)
        pids.append(any_node.launch(number).pid)
        return {container_id(number): any_node.files.scan()[container_id(number)]}

    seen = any_node.adopter.launch_pass(any_node.view(), files, more)
    assert inside_at_looks == [True]
    assert len(looks) == 1
    assert sorted(seen.adopted) == [container_id(number) for number in (2, 3, 4)]
    assert len(seen.latencies) == 3
    assert seen.errors == {}


def test_a_latency_ends_with_the_move_not_with_the_look_that_proved_it(
    any_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(any_node, 2)
    any_node.launch(2)
    any_node.time.now += 0.01
    files = any_node.files.scan()

    def slow() -> None:
        any_node.time.now += 5

    counted_looks(any_node, monkeypatch, then=slow)
    seen = any_node.adopter.launch_pass(any_node.view(), files)
    assert seen.latencies == [pytest.approx(0.01)]


def test_a_latency_lasts_until_the_last_child_is_inside(any_node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(any_node, 2)
    process = any_node.launch(2)
    child = any_node.kernel.processes.fork(process.pid)
    any_node.time.now += 0.01
    files = any_node.files.scan()

    def slow() -> None:
        any_node.time.now += 5

    counted_looks(any_node, monkeypatch, then=slow)
    seen = any_node.adopter.launch_pass(any_node.view(), files)
    assert any_node.is_inside(child.pid)
    # The first look found the child and moved it, the second one found nobody outside.
    assert seen.latencies == [pytest.approx(5.01)]


def test_a_latency_lasts_until_the_limits_are_written(any_node: Node) -> None:
    any_node.launch(2, known=False)
    any_node.time.now += 0.01
    assert any_node.adopter.launch_pass(any_node.view(), any_node.files.scan()).latencies == []
    any_node.time.now += 2
    any_node.reports[container_id(2)] = report(container_id(2), vcores=4, memory_mib=512)
    seen = any_node.adopter.launch_pass(any_node.view(), any_node.files.scan())
    assert seen.latencies == [pytest.approx(2.01)]


def test_a_flood_of_launches_does_not_put_the_look_off_for_ever(
    any_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nm_proxy.parenting.adopter.LAUNCHES_AT_ONCE", 3)
    numbers = iter(range(2, 100))
    prepared(any_node, 2, 3, 4, 5)

    def more() -> dict[str, PidFile]:
        number = next(numbers)
        any_node.launch(number)
        return {container_id(number): any_node.files.scan()[container_id(number)]}

    seen = any_node.adopter.launch_pass(any_node.view(), more(), more)
    assert len(seen.adopted) == 3
    assert next(numbers) == 5
