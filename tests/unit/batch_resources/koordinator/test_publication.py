# SPDX-License-Identifier: Apache-2.0
"""Check what goes on a Node, when it is written, and when metrics are too old."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.koordinator.prepare import Offer, origin_annotation, prepare
from batch_resources.koordinator.publication import is_degraded, is_resource_diff, needs_status_update
from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import BatchResources
from tests.unit.batch_resources.koordinator import vectors
from tests.unit.batch_resources.koordinator.vectors import ZERO_BATCH, amount, optional_amount


@pytest.mark.parametrize("vector", vectors.group("batch_prepare"))
def test_prepares_the_recorded_allocatable(vector: dict[str, Any]) -> None:
    ratio = vector["cpu_normalization_ratio"]

    prepared = prepare(
        optional_amount(vector["calculated_batch_cpu"], vector["calculated_batch_memory"]),
        third_party_text=None,
        normalization_ratio=None if ratio is None else Fraction(str(ratio)),
    )

    assert _whole(prepared.allocatable) == optional_amount(
        vector["expected_allocatable"]["batch_cpu"], vector["expected_allocatable"]["batch_memory"]
    )


@pytest.mark.parametrize("vector", vectors.group("third_party_prepare"))
def test_subtracts_third_parties_from_allocatable_only(vector: dict[str, Any]) -> None:
    prepared = prepare(
        optional_amount(vector["calculated_batch_cpu"], vector["calculated_batch_memory"]),
        third_party_text=_third_party_text(vector),
    )

    expected = vector["expected_kube_allocatable"]
    assert _whole(prepared.allocatable) == optional_amount(expected["batch_cpu"], expected["batch_memory"])
    origin = vector["expected_origin"]
    assert prepared.origin == amount(origin["batch_cpu"], origin["batch_memory"])


@pytest.mark.parametrize("vector", vectors.group("batch_degrade"))
def test_degrades_strictly_after_the_limit(vector: dict[str, Any]) -> None:
    strategy = Strategy(degrade_seconds=60 * (vector["degrade_minutes"] or 15))

    assert is_degraded(vector["update_time_age_seconds"], strategy) is vector["expected_degrade"]


@pytest.mark.parametrize("vector", vectors.group("resource_diff"))
def test_judges_a_difference_as_recorded(vector: dict[str, Any]) -> None:
    assert is_resource_diff(vector["old"], vector["new"], vector["threshold"]) is vector["expected"]


@pytest.mark.parametrize("vector", vectors.group("need_sync"))
def test_writes_the_status_when_recorded(vector: dict[str, Any]) -> None:
    strategy = Strategy(
        update_threshold_seconds=vector["update_time_threshold_seconds"], diff_threshold=vector["diff_threshold"]
    )

    needed = needs_status_update(
        amount(*vector["old"]), amount(*vector["new"]), age_seconds=vector["age_seconds"], strategy=strategy
    )

    assert needed is vector["expected_status"]


@pytest.mark.parametrize(
    ("age_seconds", "old", "new", "expected"),
    [
        pytest.param(None, amount(1, 1), amount(1, 1), True, id="never written since start"),
        pytest.param(300.0, amount(1, 1), amount(1, 1), False, id="exactly at the age limit"),
        pytest.param(300.1, amount(1, 1), amount(1, 1), True, id="past the age limit"),
        pytest.param(0.0, amount(1, 1), None, True, id="keys disappear"),
        pytest.param(0.0, None, ZERO_BATCH, True, id="keys appear with zero"),
        pytest.param(0.0, None, None, False, id="still absent"),
        pytest.param(0.0, amount(10_000, 0), amount(8_999, 0), True, id="a hair more than ten percent"),
    ],
)
def test_writes_on_age_and_on_keys_that_come_or_go(
    age_seconds: float | None, old: BatchResources | None, new: BatchResources | None, expected: bool
) -> None:
    assert needs_status_update(old, new, age_seconds=age_seconds, strategy=Strategy()) is expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[1]", id="a list"),
        pytest.param('{"allocations":[{"name":"a","priority":"koord-batch","resources":{"x":"1 2"}}]}', id="quantity"),
        pytest.param('{"allocations":["a"]}', id="entry is no object"),
        pytest.param("[" * 100_000, id="nested too deep"),
    ],
)
def test_a_text_that_cannot_be_read_subtracts_nothing(text: str) -> None:
    prepared = prepare(amount(100, 100), third_party_text=text)

    assert _whole(prepared.allocatable) == amount(100, 100)


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param("1500m", "0", {BATCH_CPU: "998500m", BATCH_MEMORY: "1Gi"}, id="a fraction leaves a fraction"),
        pytest.param("-5", "0", {BATCH_CPU: "1005", BATCH_MEMORY: "1Gi"}, id="a negative claim raises the offer"),
        pytest.param("99999999999999999999", None, {BATCH_CPU: "0", BATCH_MEMORY: "1Gi"}, id="a huge claim"),
        pytest.param("1u", None, {BATCH_CPU: "999999999000n", BATCH_MEMORY: "1Gi"}, id="a millionth"),
    ],
)
def test_odd_claims_reach_the_offer_as_koord_manager_lets_them(
    cpu: str, memory: str | None, expected: dict[str, str]
) -> None:
    entry = {"name": "x", "priority": "koord-batch", "resources": {BATCH_CPU: cpu, BATCH_MEMORY: memory}}

    prepared = prepare(amount(1_000, 2**30), third_party_text=json.dumps({"allocations": [entry]}))

    assert prepared.allocatable is not None
    assert prepared.allocatable.to_quantities() == expected


def test_origin_text_keeps_other_resources_of_a_readable_old_text() -> None:
    old = '{"resources":{"example.com/gpu":"1","kubernetes.io/batch-cpu":"7"}}'

    text = origin_annotation(old, amount(50_000, 120 * 2**30))

    assert text == (
        '{"resources":{"example.com/gpu":"1","kubernetes.io/batch-cpu":"50k","kubernetes.io/batch-memory":"120Gi"}}'
    )


@pytest.mark.parametrize("old", [None, "", "nonsense", "[]", '{"resources":3}'])
def test_origin_text_replaces_an_unreadable_old_text(old: str | None) -> None:
    assert origin_annotation(old, ZERO_BATCH) == (
        '{"resources":{"kubernetes.io/batch-cpu":"0","kubernetes.io/batch-memory":"0"}}'
    )


def _whole(offer: Offer | None) -> BatchResources | None:
    if offer is None:
        return None
    assert offer.cpu_milli.denominator == offer.memory_bytes.denominator == 1
    return amount(offer.cpu_milli.numerator, offer.memory_bytes.numerator)


def _third_party_text(vector: dict[str, Any]) -> str | None:
    if "annotation_text" in vector:
        text: str = vector["annotation_text"]
        return text
    if vector["third_party_allocations"] is None:
        return None
    return json.dumps(
        {
            "allocations": [
                {
                    "name": entry["name"],
                    "priority": entry["priority"],
                    "resources": {BATCH_CPU: str(entry["batch_cpu"]), BATCH_MEMORY: str(entry["batch_memory"])},
                }
                for entry in vector["third_party_allocations"]
            ]
        }
    )
