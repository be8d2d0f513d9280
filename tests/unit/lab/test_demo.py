# SPDX-License-Identifier: Apache-2.0
"""Check how the demo measures, plans and judges."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from batch_resources.resources import BatchResources, YarnResources
from lab.demo.agreement import Aim, expected_capacity, expected_claim, wrong_capacity
from lab.demo.backend import MACHINE, DemoNode
from lab.demo.ledger import NodeLedger
from lab.demo.observer import NodeView
from lab.demo.propagation import MismatchMeter, PropagationMeter, percentile
from lab.demo.scenario import plan_pods, plan_waves
from lab.demo.summary import Summary
from lab.demo.table import plain_lines
from lab.demo.usage import Offer, UsageMeter, Waiting, unusable_milli

_GIB = 2**30
_FLOOR = YarnResources(memory_mib=1024, vcores=1)


def test_a_change_takes_until_the_first_reading_that_shows_it() -> None:
    meter = PropagationMeter()
    meter.changed("a", 10.0)

    meter.observed("a", 10.25, is_applied=False)
    meter.observed("b", 10.3, is_applied=True)
    meter.observed("a", 10.5, is_applied=True)
    meter.observed("a", 10.75, is_applied=True)

    assert meter.samples_seconds == [0.5]
    assert meter.pending == 0


def test_a_change_that_another_overtakes_is_not_lost() -> None:
    meter = PropagationMeter()
    meter.changed("a", 10.0)
    meter.changed("a", 11.0)

    assert meter.pending == 2
    meter.observed("a", 11.5, is_applied=True)

    assert meter.samples_seconds == [1.5, 0.5]


def test_a_mismatch_lasts_from_its_first_reading_to_the_first_without() -> None:
    meter = MismatchMeter()

    for at_seconds, matches in [(1.0, True), (2.0, False), (2.5, False), (4.0, True), (5.0, True)]:
        meter.observed("a", at_seconds, matches=matches)

    assert meter.samples_seconds == [2.0]


@pytest.mark.parametrize(
    ("samples", "part", "expected"),
    [
        pytest.param([], 0.5, None, id="none"),
        pytest.param([3.0], 0.99, 3.0, id="one"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 0.5, 2.0, id="half"),
        pytest.param([float(n) for n in range(1, 201)], 0.99, 198.0, id="two of two hundred are above"),
    ],
)
def test_a_percentile_is_a_sample(samples: list[float], part: float, expected: float | None) -> None:
    assert percentile(samples, part) == expected


def test_the_same_seed_plans_the_same_play() -> None:
    assert plan_pods(3, 60, 3) == plan_pods(3, 60, 3)
    assert plan_pods(3, 60, 3) != plan_pods(4, 60, 3)
    assert plan_waves(3, 60, 3) == plan_waves(3, 60, 3)


def test_every_play_has_pods_and_ends_with_containers_held() -> None:
    for seed in range(20):
        pods = plan_pods(seed, 10, 1)
        waves = plan_waves(seed, 10, 2)

        assert pods
        assert len({pod.name for pod in pods}) == len(pods)
        assert all(0 < pod.at_seconds < 10 for pod in pods)
        assert waves[-1].wanted == 4


def test_mode_shared_wants_what_origin_leaves_beside_pods_and_a_claim_of_what_is_used() -> None:
    view = _view(origin=(10_500, 20 * _GIB), held=(3_000, 4 * _GIB), used=YarnResources(memory_mib=2048, vcores=3))

    assert wrong_capacity(view.sides, None, strict=False) == ""
    other = replace(view, capacity=YarnResources(memory_mib=16 * 1024, vcores=8))
    assert "should have" in wrong_capacity(other.sides, None, strict=False)
    assert expected_claim(view.sides, strict=False) == BatchResources(cpu_milli=3_000, memory_bytes=2 * _GIB)
    assert view.held_over_origin() == pytest.approx(6_000 / 10_500)
    assert not view.is_oversold


def test_mode_shared_keeps_the_floor_when_origin_is_gone() -> None:
    view = _view(origin=(0, 0), held=(1_000, _GIB), used=YarnResources(memory_mib=0, vcores=0))

    assert expected_capacity(view.ledger.origin, view.ledger.held, _FLOOR) == _FLOOR
    assert expected_claim(view.sides, strict=False) == BatchResources(cpu_milli=1_000, memory_bytes=_GIB)
    assert view.held_over_origin() == 0.0
    assert view.is_oversold


def test_mode_strict_wants_a_claim_of_all_that_yarn_may_take_and_the_rest_published() -> None:
    view = _view(origin=(10_500, 20 * _GIB), held=(3_000, 4 * _GIB), used=YarnResources(memory_mib=2048, vcores=3))
    claim = BatchResources(cpu_milli=7_000, memory_bytes=16 * _GIB)
    rest = BatchResources(cpu_milli=3_500, memory_bytes=4 * _GIB)
    sides = replace(view.sides, ledger=replace(view.ledger, offered=rest))
    aim = Aim(origin=sides.ledger.origin, capacity=sides.capacity)

    assert expected_claim(sides, strict=True) == claim
    assert wrong_capacity(sides, aim, strict=True) == ""
    assert "not looked at" in wrong_capacity(sides, None, strict=True)
    assert "not looked at" in wrong_capacity(sides, replace(aim, origin=rest), strict=True)
    assert "means" in wrong_capacity(sides, replace(aim, capacity=_FLOOR), strict=True)
    assert "offers" in wrong_capacity(view.sides, aim, strict=True)


def test_a_plain_line_has_a_key_for_each_figure() -> None:
    view = _view(origin=(10_500, 20 * _GIB), held=(3_000, 4 * _GIB), used=YarnResources(memory_mib=2048, vcores=3))

    assert plain_lines([view], "12:00") == [
        "12:00 node=node-1 O=10.5c/20.0Gi K=3.0c/4.0Gi A=- Y=3v/2.0Gi C=7v/16.0Gi T=- used=57%"
    ]


@pytest.mark.parametrize(
    ("waiting", "unusable"),
    [
        pytest.param(Waiting(), 1_000, id="nobody waits: what neither may hand out"),
        pytest.param(Waiting(pods=1, containers=1), 1_000, id="both wait"),
        pytest.param(Waiting(pods=1), 4_000, id="only pods wait"),
        pytest.param(Waiting(containers=1), 3_000, id="only containers wait"),
    ],
)
def test_what_is_free_is_of_no_use_where_it_is_not_on_offer_to_who_waits(waiting: Waiting, unusable: int) -> None:
    used, held = BatchResources(cpu_milli=2_000, memory_bytes=0), BatchResources(cpu_milli=3_000, memory_bytes=0)
    origin = BatchResources(cpu_milli=11_000, memory_bytes=0)
    offer = Offer.of(origin, held=held, used=used, offered=5_000, capacity=5_000)

    assert unusable_milli(offer, waiting) == unusable
    meter = UsageMeter()
    meter.take_node(offer, waiting, 2.0)
    meter.take_waiting(waiting, 2.0)
    assert meter.unusable_percent == pytest.approx(100 * unusable / 11_000)
    assert meter.pod_wait_seconds(2) == waiting.pods
    assert meter.container_wait_seconds(0) is None


@pytest.mark.parametrize(("mode", "oversold"), [("shared", 5), ("strict", 0)])
def test_a_complete_play_is_a_success(mode: str, oversold: int) -> None:
    summary = replace(_summary(), mode=mode, oversold_samples=oversold)
    assert summary.failures() == []
    assert any(f"mode {mode}" in sentence for sentence in summary.sentences())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"containers_killed": 1}, "killed", id="killed"),
        pytest.param({"mode": "strict"}, "5 readings", id="sold twice"),
        pytest.param({"unsettled_claims": ("node-1 claims 1",)}, "node-1 claims 1", id="claim"),
        pytest.param({"unsettled_capacities": ("node-1 has 1",)}, "node-1 has 1", id="capacity"),
        pytest.param({"controller_trouble": "it ended"}, "it ended", id="controller"),
        pytest.param({"propagation_samples": 0}, "no change of origin", id="no samples"),
        pytest.param({"pending_changes": 2}, "2 changes of origin never", id="pending"),
        pytest.param({"pods_bound": 0}, "no batch pod", id="no pods"),
        pytest.param({"containers_started": 0}, "no YARN container", id="no containers"),
        pytest.param({"kubernetes_writes": 0}, "no claim", id="no claims"),
        pytest.param({"yarn_writes": 0}, "no capacity", id="no updates"),
    ],
)
def test_each_missing_condition_fails_with_its_own_sentence(change: dict[str, Any], words: str) -> None:
    failures = replace(_summary(), **change).failures()

    assert len(failures) == 1
    assert words in failures[0]


def test_the_summary_is_json_with_the_documented_keys() -> None:
    document = json.loads(json.dumps(_summary().to_json()))

    assert {
        "oversold_samples",
        "excess_after_fall_samples",
        "kubernetes_writes",
        "yarn_writes",
        "propagation_p50_seconds",
        "propagation_p99_seconds",
        "containers_killed",
        "duration_seconds",
        "highest_held_over_origin",
    } <= document.keys()
    assert document["failures"] == []


def _view(*, origin: tuple[int, int], held: tuple[int, int], used: YarnResources) -> NodeView:
    node = DemoNode(name="node-1", node_id="a:1", host_name="a", address="127.0.1.1", capacity=MACHINE)
    ledger = NodeLedger(origin=_amount(origin), offered=None, held=_amount(held), claimed=None)
    capacity = YarnResources(memory_mib=16 * 1024, vcores=7)
    return NodeView(node=node, ledger=ledger, capacity=capacity, used=used, floor=_FLOOR)


def _amount(values: tuple[int, int]) -> BatchResources:
    return BatchResources(cpu_milli=values[0], memory_bytes=values[1])


def _summary() -> Summary:
    return Summary(
        backend="embedded",
        mode="shared",
        growth_window_seconds=0.0,
        settle_seconds=1.0,
        seed=1,
        nodes=3,
        duration_seconds=60.0,
        startup_seconds=3.0,
        samples=100,
        oversold_samples=5,
        excess_after_fall_samples=2,
        highest_held_over_origin=1.2,
        highest_held_over_origin_node="node-1",
        kubernetes_writes=10,
        yarn_writes=20,
        origin_changes=30,
        propagation_samples=25,
        propagation_p50_seconds=0.1,
        propagation_p99_seconds=0.3,
        unusable_percent=1.5,
        pod_wait_seconds=0.5,
        container_wait_seconds=None,
        claim_samples=9,
        claim_p50_seconds=0.1,
        claim_p99_seconds=0.4,
        pending_changes=0,
        pods_bound=7,
        containers_started=8,
        containers_killed=0,
    )
