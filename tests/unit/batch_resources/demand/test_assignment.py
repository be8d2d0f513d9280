# SPDX-License-Identifier: Apache-2.0
"""Which node serves a pod that waits: one, the same one, and not more than Kubernetes' share where YARN waits too."""

from __future__ import annotations

import random

import pytest

from batch_resources.demand import assignment as module
from batch_resources.demand.assignment import Assignment
from batch_resources.demand.placement import ANYWHERE, Host, Placement, Requirement, Term
from batch_resources.demand.rooms import Room
from batch_resources.resources import ZERO_BATCH
from tests.unit.batch_resources.builders import batch

CORE = 1000


def _room(name: str, now: int, most: int, *, contested: bool = False, zone: str = "") -> Room:
    labels = {"zone": zone} if zone else {}
    return Room(
        host=Host(name=name, labels=labels),
        now=batch(now * CORE, now),
        most=batch(most * CORE, most),
        is_contested=contested,
    )


def _of(*rooms: Room, **weights: int) -> Assignment:
    assignment = Assignment(**weights)
    for room in rooms:
        assignment.set_room(room.host.name, room)
    assignment.settle()
    return assignment


def _add(assignment: Assignment, pod: str, cores: int, placement: Placement = ANYWHERE) -> set[str]:
    assignment.add(pod, batch(cores * CORE, cores), placement)
    return assignment.settle()


def test_a_pod_is_served_on_the_node_whose_boundary_moves_least() -> None:
    assignment = _of(_room("a", 1, 20), _room("b", 6, 20), _room("c", 2, 20))
    assert _add(assignment, "pod", 8) == {"b"}
    assert assignment.load("b") == batch(8 * CORE, 8)
    assert assignment.load("a") == assignment.load("c") == ZERO_BATCH


def test_of_equal_nodes_the_first_by_name_is_taken() -> None:
    assignment = _of(_room("c", 0, 9), _room("a", 0, 9), _room("b", 0, 9))
    _add(assignment, "pod", 3)
    assert assignment.place("pod") == "a"


def test_pods_that_come_while_a_boundary_moves_share_its_move() -> None:
    assignment = _of(_room("a", 1, 20), _room("b", 1, 20), _room("c", 1, 20))
    for number in range(3):
        assert _add(assignment, f"pod-{number}", 2) == {"a"}
    assert assignment.load("a") == batch(6 * CORE, 6)


def test_a_move_under_way_is_shared_by_pods_of_another_shape() -> None:
    assignment = _of(_room("a", 0, 20), _room("b", 3, 20))
    _add(assignment, "large", 12)
    assert assignment.place("large") == "b"
    _add(assignment, "small", 4)
    assert assignment.place("small") == "b"


def test_a_move_under_way_takes_no_more_than_the_node_could_give() -> None:
    assignment = _of(_room("a", 1, 5), _room("b", 1, 5))
    for number in range(3):
        _add(assignment, f"pod-{number}", 2)
    assert [assignment.place(f"pod-{number}") for number in range(3)] == ["a", "a", "b"]


def test_less_than_a_tenth_of_a_node_is_no_reason_to_move_another_boundary() -> None:
    # What the pods before left free on `a` varies by a little; the next one is to go there all the same.
    for left in (0, 1):
        assignment = _of(_room("a", left, 20), _room("b", 1, 20))
        _add(assignment, "pod", 2)
        assert assignment.place("pod") == "a"


def test_nodes_that_have_the_room_are_filled_before_any_boundary_moves() -> None:
    assignment = _of(_room("a", 4, 20), _room("b", 4, 8))
    for number in range(4):
        _add(assignment, f"pod-{number}", 2)
    assert (assignment.load("a"), assignment.load("b")) == (batch(4 * CORE, 4), batch(4 * CORE, 4))


def test_the_whole_pod_has_to_fit_in_both_resources() -> None:
    lopsided = Room(host=Host(name="a"), now=ZERO_BATCH, most=batch(20 * CORE, 1), is_contested=False)
    assignment = _of(lopsided, _room("b", 0, 5))
    _add(assignment, "pod", 4)
    assert assignment.place("pod") == "b"
    _add(assignment, "large", 6)
    assert assignment.place("large") is None
    assert assignment.unserved() == 1


def test_a_pod_keeps_its_node_while_it_fits_there() -> None:
    assignment = _of(_room("a", 0, 9))
    _add(assignment, "pod", 3)
    assignment.set_room("b", _room("b", 9, 9))
    assert assignment.settle() == set()
    assert assignment.place("pod") == "a"


def test_a_pod_goes_elsewhere_when_its_node_has_less() -> None:
    assignment = _of(_room("a", 9, 9), _room("b", 0, 9))
    _add(assignment, "old", 3)
    _add(assignment, "new", 3)
    assignment.set_room("a", _room("a", 4, 4))
    assert assignment.settle() == {"a", "b"}
    assert (assignment.place("old"), assignment.place("new")) == ("a", "b")


def test_a_pod_that_fits_nowhere_is_served_when_a_node_has_more() -> None:
    assignment = _of(_room("a", 2, 2))
    _add(assignment, "pod", 3)
    assert assignment.place("pod") is None
    assignment.set_room("a", _room("a", 2, 3))
    assert assignment.settle() == {"a"}


def test_a_pod_that_is_bound_or_gone_leaves_its_place_to_the_next() -> None:
    assignment = _of(_room("a", 3, 3))
    _add(assignment, "first", 3)
    _add(assignment, "second", 3)
    assignment.remove("first")
    assert assignment.settle() == {"a"}
    assert assignment.place("second") == "a"
    assert len(assignment) == 1


def test_a_node_that_is_gone_serves_nobody() -> None:
    assignment = _of(_room("a", 3, 3), _room("b", 0, 3))
    _add(assignment, "pod", 3)
    assignment.set_room("a", None)
    assignment.settle()
    assert assignment.place("pod") == "b"
    assert assignment.load("a") == ZERO_BATCH


ZONE_B = Placement(terms=(Term(expressions=(Requirement("zone", "In", ("b",)),)),))


def test_a_pod_is_served_only_where_it_may_run() -> None:
    assignment = _of(_room("a", 9, 9, zone="a"), _room("b", 0, 9, zone="b"))
    _add(assignment, "pod", 3, ZONE_B)
    assert assignment.place("pod") == "b"
    assignment.set_room("b", _room("b", 0, 9, zone="c"))
    assignment.settle()
    assert assignment.place("pod") is None


def test_a_pod_that_changes_waits_anew() -> None:
    assignment = _of(_room("a", 9, 9, zone="a"), _room("b", 0, 9, zone="b"))
    _add(assignment, "pod", 3)
    assert _add(assignment, "pod", 3) == set()
    assert _add(assignment, "pod", 3, ZONE_B) == {"a", "b"}
    assert assignment.place("pod") == "b"


@pytest.mark.parametrize(
    ("yarn_weight", "kubernetes_weight", "served"),
    [(1, 1, 5), (3, 1, 3), (0, 1, 10), (1, 0, 0)],
)
def test_where_yarn_waits_too_pods_get_moves_up_to_their_share(
    yarn_weight: int, kubernetes_weight: int, served: int
) -> None:
    rooms = [_room(f"node-{number}", 0, 4, contested=True) for number in range(10)]
    assignment = _of(*rooms, yarn_weight=yarn_weight, kubernetes_weight=kubernetes_weight)
    for number in range(20):
        _add(assignment, f"pod-{number:02}", 4)
    assert len(assignment) - assignment.unserved() == served


def test_a_pod_larger_than_its_share_of_a_node_is_served_all_the_same() -> None:
    assignment = _of(_room("a", 0, 10, contested=True))
    _add(assignment, "pod", 9)
    assert assignment.place("pod") == "a"


def test_pods_over_the_share_are_served_where_nothing_has_to_move() -> None:
    assignment = _of(_room("a", 4, 4, contested=True), _room("b", 0, 4, contested=True), kubernetes_weight=0)
    _add(assignment, "first", 4)
    _add(assignment, "second", 4)
    assert (assignment.place("first"), assignment.place("second")) == ("a", None)


def test_pods_over_the_share_are_served_when_yarn_waits_no_more() -> None:
    assignment = _of(_room("a", 0, 4, contested=True), kubernetes_weight=0)
    _add(assignment, "pod", 4)
    assert assignment.place("pod") is None
    assignment.set_room("a", _room("a", 0, 4))
    assert assignment.settle() == {"a"}


def test_pods_over_the_share_are_served_when_others_have_been() -> None:
    rooms = [_room(f"node-{number}", 0, 4, contested=True) for number in range(2)]
    assignment = _of(*rooms)
    _add(assignment, "first", 4)
    _add(assignment, "second", 4)
    assert assignment.unserved() == 1
    assignment.remove("first")
    assignment.set_room("node-0", _room("node-0", 0, 0, contested=True))
    while assignment.has_work:
        assignment.settle()
    assert assignment.place("second") == "node-1"


def test_much_work_is_done_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NODES_PER_TURN", 10)
    assignment = _of(*(_room(f"node-{number:02}", 0, 9) for number in range(20)))
    for number in range(6):
        assignment.add(f"pod-{number}", batch((number + 1) * CORE, 1), ANYWHERE)
    turns = 0
    while assignment.has_work:
        assignment.settle()
        turns += 1
    assert turns > 3
    assert assignment.unserved() == 0


def test_any_order_of_changes_keeps_the_sums_right() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    assignment = Assignment(yarn_weight=2, kubernetes_weight=1)
    pods: dict[str, int] = {}
    rooms: dict[str, Room] = {}
    for _ in range(600):
        match chance.randrange(4):
            case 0:
                name = f"pod-{chance.randrange(40)}"
                pods[name] = chance.randint(1, 6)
                placement = ZONE_B if chance.random() < 0.3 else ANYWHERE
                assignment.add(name, batch(pods[name] * CORE, pods[name]), placement)
            case 1:
                name = f"pod-{chance.randrange(40)}"
                pods.pop(name, None)
                assignment.remove(name)
            case 2:
                name = f"node-{chance.randrange(8)}"
                most = chance.randint(0, 12)
                room = _room(
                    name,
                    chance.randint(0, most),
                    most,
                    contested=chance.random() < 0.5,
                    zone=chance.choice("ab"),
                )
                rooms[name] = room
                assignment.set_room(name, room)
            case _:
                assignment.settle()
        _check(assignment, pods, rooms)
    for name in list(pods):
        assignment.remove(name)
    for name in rooms:
        assignment.set_room(name, None)
    assert (assignment.total, assignment.share.granted, assignment.share.contested) == (ZERO_BATCH,) * 3
    assert len(assignment) == assignment.unserved() == 0


def _check(assignment: Assignment, pods: dict[str, int], rooms: dict[str, Room]) -> None:
    assert assignment.total == batch(sum(pods.values()) * CORE, sum(pods.values()))
    granted = 0
    for name, room in rooms.items():
        load = sum(pods[pod] for pod in assignment.pods_on(name))
        assert assignment.load(name) == batch(load * CORE, load)
        assert assignment.load(name).fits_in(room.most)
        assert all(assignment.place(pod) == name for pod in assignment.pods_on(name))
        granted += load if room.is_contested else 0
    assert assignment.share.granted.cpu_milli == granted * CORE
