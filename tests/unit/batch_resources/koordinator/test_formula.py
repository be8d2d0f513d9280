# SPDX-License-Identifier: Apache-2.0
"""Check the batch formula and its rounding against recorded numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from batch_resources.koordinator.demand import NodeLoad, PodDemand, PodUsage
from batch_resources.koordinator.formula import NodeShape, calculate_batch, calculate_batch_zones, split_over_zones
from batch_resources.koordinator.priority import PriorityClass, QosClass
from batch_resources.koordinator.rounding import divide_ceil, percent_of, scaled_by_ratio
from batch_resources.koordinator.strategy import CalculatePolicy, Strategy
from tests.unit.batch_resources.koordinator import vectors
from tests.unit.batch_resources.koordinator.vectors import amount

_NODE = NodeShape(capacity=amount(10_000, 10_000), allocatable=amount(10_000, 10_000))


@pytest.mark.parametrize("vector", vectors.group("batch_calculate"))
def test_calculates_the_recorded_batch_resources_of_a_node(vector: dict[str, Any]) -> None:
    batch = calculate_batch(
        vectors.node_shape(vector),
        vectors.strategy(vector["strategy"]),
        pods=vectors.pods(vector),
        load=vectors.load(vector),
    )

    assert batch == amount(vector["expected"]["batch_cpu"], vector["expected"]["batch_memory"])


@pytest.mark.parametrize("vector", vectors.group("batch_calculate", having="numa_zones"))
def test_calculates_the_recorded_batch_resources_of_each_zone(vector: dict[str, Any]) -> None:
    batch = calculate_batch_zones(
        vectors.node_shape(vector),
        vectors.strategy(vector["strategy"]),
        zones=vectors.zones(vector),
        pods=vectors.pods(vector),
        load=vectors.load(vector),
    )

    assert batch == {name: amount(*values) for name, values in vector["expected"]["zones"].items()}


@pytest.mark.parametrize("vector", vectors.group("numa_split"))
def test_shares_a_pod_between_its_zones(vector: dict[str, Any]) -> None:
    chosen, count = vector["pod_numa"] or (), vector["numa_num"]

    assert split_over_zones(amount(*vector["request"]), chosen, count) == [
        amount(*part) for part in vector["expected_request"]
    ]
    assert split_over_zones(amount(*vector["usage"]), chosen, count) == [
        amount(*part) for part in vector["expected_usage"]
    ]


@pytest.mark.parametrize("vector", vectors.group("divide_ceil"))
def test_divides_rounding_up(vector: dict[str, Any]) -> None:
    divided = divide_ceil(amount(vector["milli_cpu"], vector["mem_bytes"]), vector["divisor"])

    assert divided == amount(vector["expected_milli_cpu"], vector["expected_mem_bytes"])


@pytest.mark.parametrize("vector", vectors.group("batch_numa_ratio"))
def test_scales_zone_cpu_by_the_normalization_ratio(vector: dict[str, Any]) -> None:
    ratio = Fraction(str(vector["cpu_normalization_ratio"]))

    scaled = {name: [scaled_by_ratio(cpu, ratio), memory] for name, (cpu, memory) in vector["zones_in"].items()}

    assert scaled == vector["expected_zones"]


@pytest.mark.parametrize(
    ("amount_in", "percent", "expected"),
    [
        pytest.param(100, 29, 28, id="0.29 as a float is just below, so 28.999... is cut to 28"),
        pytest.param(100_000, 35, 35_000, id="an exact product stays"),
        pytest.param(7, -50, -3, id="a negative margin is cut towards zero"),
        pytest.param(3, 150, 4, id="above the whole"),
    ],
)
def test_percentages_are_cut_as_float64_gives_them(amount_in: int, percent: int, expected: int) -> None:
    assert percent_of(amount_in, percent) == expected


def test_a_pod_without_usage_is_left_out_of_the_larger_sum_of_a_node() -> None:
    pod = _pod("new", requested=4_000)
    strategy = Strategy(cpu_reclaim_percent=100, cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST)

    batch = calculate_batch(_NODE, strategy, pods=[pod], load=NodeLoad())

    assert batch.cpu_milli == 10_000


def test_a_pod_without_usage_counts_in_the_larger_sum_of_a_zone() -> None:
    pod = _pod("new", requested=4_000)
    strategy = Strategy(cpu_reclaim_percent=100, cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST)

    batch = calculate_batch_zones(_NODE, strategy, zones={"z": _NODE.capacity}, pods=[pod], load=NodeLoad())

    assert batch["z"].cpu_milli == 6_000


def test_a_finished_pod_still_in_the_report_is_charged() -> None:
    pod = _pod("done", requested=4_000, phase="Succeeded")
    report = NodeLoad(pods=(PodUsage(key="done", priority=PriorityClass.PROD, used=amount(1_000, 0)),))

    batch = calculate_batch(_NODE, Strategy(cpu_reclaim_percent=100), pods=[pod], load=report)

    assert batch.cpu_milli == 9_000


def test_cpu_takes_policy_request_as_usage() -> None:
    pod = _pod("p", requested=4_000)
    report = NodeLoad(pods=(PodUsage(key="p", priority=PriorityClass.PROD, used=amount(1_000, 0)),))
    strategy = Strategy(cpu_reclaim_percent=100, cpu_policy=CalculatePolicy.REQUEST)

    assert calculate_batch(_NODE, strategy, pods=[pod], load=report).cpu_milli == 9_000


def _pod(key: str, *, requested: int, phase: str = "Running") -> PodDemand:
    return PodDemand(key=key, phase=phase, priority=PriorityClass.PROD, qos=QosClass.LS, request=amount(requested, 0))
