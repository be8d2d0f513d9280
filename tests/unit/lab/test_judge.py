# SPDX-License-Identifier: Apache-2.0
"""Show that the judge finds every unit that was sold twice, and blames nobody for what nobody could help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.judge.events import CapacityEvent, ContainerEvent, Event, NodeVersion, PodVersion, Silence, Verdict
from lab.judge.judging import Tolerance, judge
from lab.judge.resource_manager_log import read_events

_NM = "nm-1:8041"
_LOOSE = Tolerance(order_seconds=0.25, flight_seconds=1.0, fall_seconds=10.0, claim_seconds=1.0)


def _units(count: int) -> BatchResources:
    return BatchResources(cpu_milli=count * 1000, memory_bytes=count << 30)


class _Log:
    """Write a log by hand; every step is a second after the one before, unless told otherwise."""

    def __init__(self, origin: int = 10, *, allocatable: int | None = None, claimed: int = 10) -> None:
        self.events: list[Event] = []
        self.now, self._version, self._claimed = 100.0, 1, claimed
        self.node(origin, allocatable=allocatable)

    def _next(self, after: float) -> float:
        self.now += after
        self._version += 1
        return self.now

    def node(
        self, origin: int | None, *, allocatable: int | None = None, claimed: int | None = None, after: float = 1.0
    ) -> None:
        self._claimed = self._claimed if claimed is None else claimed
        at = self._next(after)
        shown = (origin or 0) if allocatable is None else allocatable
        self.events.append(
            NodeVersion(
                at=at,
                version=self._version,
                node="n",
                origin=None if origin is None else _units(origin),
                allocatable=_units(shown),
                others=ZERO_BATCH,
                claimed=_units(self._claimed),
            )
        )

    def pod(self, name: str, size: int | None, *, after: float = 1.0) -> None:
        at = self._next(after)
        request = None if size is None else _units(size)
        self.events.append(PodVersion(at=at, version=self._version, pod=name, node="n", request=request))

    def container(self, name: str, size: int | None, *, after: float = 1.0) -> None:
        at = self._next(after)
        amount = None if size is None else _units(size)
        self.events.append(ContainerEvent(at=at, manager=_NM, container=name, size=amount))

    def capacity(self, size: int, *, after: float = 1.0) -> None:
        self.events.append(CapacityEvent(at=self._next(after), manager=_NM, capacity=_units(size)))

    def silence(self, seconds: float) -> None:
        """Let the watch be heard again; it was last heard so long ago."""
        self.events.append(Silence(since=self.now - seconds, at=self.now))

    def verdict(self) -> Verdict:
        return judge(self.events, {_NM: "n"}, _LOOSE)


def _counts(verdict: Verdict) -> tuple[int, int, int]:
    return len(verdict.violations), len(verdict.after_falls), len(verdict.undecided)


@pytest.mark.parametrize("yarn_first", [False, True])
def test_finds_whoever_grows_last_when_both_together_hold_more_than_origin(yarn_first: bool) -> None:
    log = _Log(10)
    steps: list[Callable[[], None]] = [lambda: log.pod("p", 6), lambda: log.container("c", 5)]
    for step in reversed(steps) if yarn_first else steps:
        step()
    verdict = log.verdict()
    assert _counts(verdict) == (1, 0, 0)
    assert verdict.violations[0].side == ("kubernetes" if yarn_first else "yarn")
    assert verdict.growths == {"kubernetes": 1, "yarn": 1}


@pytest.mark.parametrize("gap", [0.0, 0.001, 0.1])
def test_finds_two_growths_at_nearly_the_same_time(gap: float) -> None:
    log = _Log(10)
    log.container("c", 5)
    log.pod("p", 6, after=gap)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_a_full_node_is_no_violation() -> None:
    log = _Log(10)
    log.pod("p", 6)
    log.container("c", 4)
    verdict = log.verdict()
    assert _counts(verdict) == (0, 0, 0)
    assert verdict.oversold_seconds == 0


def test_others_count_like_pods() -> None:
    log = _Log(10)
    log.events.append(
        NodeVersion(
            at=103.0,
            version=50,
            node="n",
            origin=_units(10),
            allocatable=_units(10),
            others=_units(3),
            claimed=_units(10),
        )
    )
    log.now = 104.0
    log.container("c", 8)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_what_ends_makes_room_and_what_is_told_twice_grows_once() -> None:
    log = _Log(10)
    log.container("c", 5)
    log.pod("p", 5)
    log.container("c", None)
    log.pod("p", 5)
    log.pod("q", 5)
    assert _counts(log.verdict()) == (0, 0, 0)
    log.pod("r", 1)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_an_excess_left_by_a_fall_of_origin_is_no_growth() -> None:
    log = _Log(10)
    log.pod("p", 5)
    log.container("c", 5)
    log.node(6)
    log.pod("p", None, after=3.0)
    verdict = log.verdict()
    assert _counts(verdict) == (0, 0, 0)
    assert verdict.oversold_seconds == pytest.approx(3.0)


def test_a_growth_by_an_older_permission_is_told_apart() -> None:
    log = _Log(10, allocatable=5)
    log.capacity(5)
    log.pod("p", 5)
    log.node(6, allocatable=1)
    log.container("c", 3, after=0.3)
    assert _counts(log.verdict()) == (0, 1, 0)


def test_no_older_permission_covers_more_than_the_older_origin() -> None:
    log = _Log(10, allocatable=5)
    log.capacity(9)
    log.pod("p", 5)
    log.node(6, allocatable=1)
    log.container("c", 6, after=0.3)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_a_growth_after_all_permissions_fitted_again_is_a_violation() -> None:
    log = _Log(10, allocatable=5)
    log.capacity(5)
    log.node(6, allocatable=1)
    log.capacity(4, after=0.1)
    log.capacity(9, after=3.0)
    log.container("c", 8)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_a_growth_long_after_a_fall_is_a_violation_even_if_permissions_never_fitted() -> None:
    log = _Log(10, allocatable=10)
    log.capacity(10)
    log.node(6, allocatable=6)
    log.pod("p", 5)
    log.container("c", 3, after=10.0)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_room_that_is_told_right_after_yarn_grew_leaves_the_order_open() -> None:
    log = _Log(10)
    log.pod("p", 6)
    log.container("c", 8)
    log.pod("p", None, after=0.1)
    assert _counts(log.verdict()) == (0, 0, 1)


def test_room_that_yarn_makes_right_after_a_pod_was_bound_comes_too_late() -> None:
    log = _Log(10)
    log.container("c", 6)
    log.pod("p", 8)
    log.container("c", None, after=0.1)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_room_that_was_made_in_a_silence_may_be_told_after_it() -> None:
    log = _Log(10)
    log.pod("p", 6)
    log.container("c", 8, after=5.0)
    log.pod("p", None, after=20.0)
    log.silence(24.0)
    assert _counts(log.verdict()) == (0, 0, 1)


def test_room_that_is_told_long_after_a_silence_was_made_after_it() -> None:
    log = _Log(10)
    log.pod("p", 6)
    log.container("c", 8, after=5.0)
    log.node(10, after=20.0)
    log.silence(24.0)
    log.pod("p", None, after=0.5)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_a_pod_that_is_told_after_a_silence_may_have_been_bound_when_yarn_held_less() -> None:
    log = _Log(10)
    log.pod("p", 6)
    log.container("c", 8, after=20.0)
    log.silence(20.5)
    log.pod("q", 2, after=0.1)
    log.pod("p", None, after=0.0)
    log.pod("q", None, after=0.0)
    assert _counts(log.verdict()) == (0, 0, 2)


def test_a_pod_that_does_not_fit_beside_the_least_that_yarn_held_in_a_silence_was_sold_twice() -> None:
    log = _Log(10)
    log.container("c", 5)
    log.container("d", 3, after=20.0)
    log.silence(19.5)
    log.pod("q", 6, after=0.1)
    assert _counts(log.verdict()) == (1, 0, 0)


def test_a_silence_does_not_count_for_a_claim_below_use() -> None:
    log = _Log(10, claimed=4)
    log.container("c", 5)
    log.node(10, claimed=5, after=20.0)
    log.silence(19.5)
    assert log.verdict().claims_below_use == ()


def test_nothing_is_judged_where_no_origin_is_published() -> None:
    log = _Log(10)
    log.node(None)
    log.container("c", 12)
    assert _counts(log.verdict()) == (0, 0, 0)


def test_tells_a_claim_that_stays_below_use() -> None:
    log = _Log(10, claimed=4)
    log.container("c", 5)
    log.node(10, claimed=5, after=0.5)
    assert log.verdict().claims_below_use == ()
    log.node(10, claimed=3)
    log.node(10, claimed=5, after=2.0)
    assert len(log.verdict().claims_below_use) == 1
    log.node(10, claimed=2)
    log.pod("p", 1, after=2.0)
    assert len(log.verdict().claims_below_use) == 2


def test_kubernetes_versions_are_ordered_by_version_even_if_told_in_another_order() -> None:
    log = _Log(10)
    log.container("c", 5)
    log.pod("q", 5)
    early = PodVersion(at=log.now + 0.05, version=900, pod="q", node="n", request=None)
    late = PodVersion(at=log.now + 0.02, version=901, pod="p", node="n", request=_units(5))
    log.events += [late, early]
    assert _counts(log.verdict()) == (0, 0, 0)


_LINES = Path(__file__).parents[2].joinpath("data", "resource-manager-3.5.0.log").read_text().splitlines()
_RESTART, _RECOVERED = 7, 9
"""Lines of the recording before the restart, and before what was recovered."""


def _summary(lines: Sequence[str]) -> list[tuple[str, str, int]]:
    found = []
    for event in sorted(read_events(lines), key=lambda each: each.at):
        if isinstance(event, CapacityEvent):
            found.append(("capacity", event.manager, event.capacity.cpu_milli))
        else:
            found.append((event.container[-1], event.manager, 0 if event.size is None else event.size.cpu_milli))
    return found


def test_reads_what_the_scheduler_logs() -> None:
    assert _summary(_LINES[:_RESTART]) == [
        ("capacity", _NM, 1000),
        ("capacity", _NM, 8000),
        ("1", _NM, 1000),
        ("2", _NM, 2000),
        ("1", _NM, 0),
    ]


def test_a_container_that_a_new_scheduler_recovers_stays_and_one_that_it_does_not_has_ended() -> None:
    assert _summary(_LINES)[5:] == [("capacity", _NM, 4000), ("2", _NM, 2000)]
    assert _summary(_LINES[:_RECOVERED])[5:] == [("capacity", _NM, 4000), ("2", _NM, 0)]
