# SPDX-License-Identifier: Apache-2.0
"""Test that processes which fork while they are moved all end up inside."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from nm_proxy.cgroup.errors import PermissionDeniedError
from nm_proxy.cgroup.gathering import UNSURE_ROUNDS, gather
from nm_proxy.parenting.belonging import BelongingLook, Root
from tests.unit.nm_proxy.world import KINDS, Node


def ready(node: Node) -> tuple[Node, int]:
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    return node, node.launch().pid


def look_at(node: Node, pid: int, *, vanished: int = 0) -> BelongingLook:
    table = node.processes.table()
    start = node.kernel.processes.by_pid[pid].start_ticks if pid in node.kernel.processes.by_pid else 0
    table = type(table)(table.processes, vanished)
    return BelongingLook(table, roots={node.path(): Root(pid, start)}, carriers={}, excluded=frozenset({1}))


def test_brings_in_everyone_who_is_there(any_node: Node) -> None:
    node, pid = ready(any_node)
    child = node.kernel.processes.fork(pid)
    grandchild = node.kernel.processes.fork(child.pid, new_session=True)
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid)).values()
    assert result.is_settled
    assert result.rounds == 2
    assert result.pids == {pid, child.pid, grandchild.pid}
    assert all(node.is_inside(one) for one in result.pids)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seed", range(12))
def test_no_fork_at_any_moment_escapes(tmp_path: Path, kind: str, seed: int) -> None:
    node, pid = ready(Node(tmp_path, kind=kind))
    dice = random.Random(seed)
    born = [pid]

    def fork(moving: int, mount_point: str) -> None:
        if len(born) < 40 and dice.random() < 0.6:
            parent = dice.choice([one for one in born if one in node.kernel.processes.by_pid])
            born.append(node.kernel.processes.fork(parent, new_session=dice.random() < 0.3).pid)

    node.kernel.before_move = fork
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid)).values()
    assert result.is_settled
    assert [one for one in born if not node.is_inside(one)] == []


def test_finds_children_whose_parent_ended_by_their_session(node: Node) -> None:
    _, pid = ready(node)
    child = node.kernel.processes.fork(pid)
    orphan = node.kernel.processes.fork(child.pid)
    node.kernel.processes.exit(child.pid)
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid)).values()
    assert result.pids == {pid, orphan.pid}


def test_looks_again_when_somebody_vanished(node: Node) -> None:
    _, pid = ready(node)
    looks = iter([1, 1, 0, 0])
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid, vanished=next(looks))).values()
    assert result.is_settled
    assert result.rounds == 3


def test_believes_a_busy_node_in_the_end(node: Node) -> None:
    _, pid = ready(node)
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid, vanished=1)).values()
    assert result.is_settled
    assert result.rounds == 2 + UNSURE_ROUNDS


def test_gives_up_for_now_on_a_fork_bomb(node: Node) -> None:
    _, pid = ready(node)

    def bomb() -> BelongingLook:
        node.kernel.put(node.kernel.processes.fork(pid).pid, "")
        return look_at(node, pid)

    (result,) = gather(node.tree, [node.path()], bomb, max_rounds=10).values()
    assert not result.is_settled
    assert result.error is None
    assert result.rounds == 10


def test_one_group_that_cannot_be_filled_does_not_stop_the_others(node: Node) -> None:
    _, pid = ready(node)
    node.tree.create(node.path(3))
    other = node.launch(3)
    node.kernel.fail("write", f"{node.path()}/cgroup.procs", errno.EACCES)
    table_roots = {
        node.path(): Root(pid, node.kernel.processes.by_pid[pid].start_ticks),
        node.path(3): Root(other.pid, other.start_ticks),
    }

    def look() -> BelongingLook:
        return BelongingLook(node.processes.table(), roots=table_roots, carriers={}, excluded=frozenset())

    results = gather(node.tree, table_roots, look)
    assert isinstance(results[node.path()].error, PermissionDeniedError)
    assert results[node.path(3)].is_settled
    assert node.is_inside(other.pid, 3)


def test_a_complete_look_finds_who_left_one_hierarchy(node: Node) -> None:
    _, pid = ready(node)
    gather(node.tree, [node.path()], lambda: look_at(node, pid))
    node.kernel.put(pid, "", controller="cpu")
    (result,) = gather(node.tree, [node.path()], lambda: look_at(node, pid), is_complete=True).values()
    assert result.writes == 1
    assert result.brought == {pid}
    assert node.is_inside(pid)


def test_who_is_born_or_dies_while_lists_are_read_was_not_outside(node: Node) -> None:
    _, pid = ready(node)
    gather(node.tree, [node.path()], lambda: look_at(node, pid))
    short = node.kernel.processes.fork(pid)
    stale = look_at(node, pid)
    node.kernel.processes.exit(short.pid)
    looks = iter([stale])
    read = node.kernel.read
    births: list[int] = []

    def read_and_be_born(path: str) -> str:
        text = read(path)
        if path.endswith("cpu/" + node.path() + "/cgroup.procs") and not births:
            births.append(node.kernel.processes.fork(pid).pid)
        return text

    node.kernel.read = read_and_be_born  # type: ignore[method-assign] # the worst moment
    (result,) = gather(
        node.tree, [node.path()], lambda: next(looks, None) or look_at(node, pid), is_complete=True
    ).values()
    assert result.is_settled
    assert result.brought == frozenset()
    assert node.is_inside(births[0])


def test_does_not_follow_a_number_that_means_another_process_now(node: Node) -> None:
    _, pid = ready(node)
    node.kernel.processes.exit(pid)
    node.kernel.processes.now_ticks += 500
    stranger = node.kernel.processes.start(pid=pid)
    look = BelongingLook(node.processes.table(), roots={node.path(): Root(pid, 1)}, carriers={}, excluded=frozenset())
    assert stranger.pid not in look.belonging(node.path(), frozenset())
