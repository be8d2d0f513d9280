# SPDX-License-Identifier: Apache-2.0
"""Check the classes of pods and what nodes keep for themselves."""

from __future__ import annotations

import pytest

from batch_resources.koordinator.priority import (
    PRIORITY_CLASS_LABEL,
    QOS_CLASS_LABEL,
    KubernetesQos,
    PriorityClass,
    QosClass,
    priority_class,
    qos_class,
)
from batch_resources.koordinator.reservation import annotated_reservation, kubelet_reservation, reserved_cpu_count
from batch_resources.resources import BatchResources
from tests.unit.batch_resources.koordinator.vectors import ZERO_BATCH, amount


@pytest.mark.parametrize(
    ("labels", "priority", "qos", "expected"),
    [
        pytest.param({PRIORITY_CLASS_LABEL: "koord-batch"}, 9500, QosClass.LS, PriorityClass.BATCH, id="label first"),
        pytest.param({PRIORITY_CLASS_LABEL: "gold"}, 5500, QosClass.BE, PriorityClass.NONE, id="unknown label"),
        pytest.param({}, 7000, QosClass.BE, PriorityClass.MID, id="priority before QoS"),
        pytest.param({}, 3999, QosClass.LS, PriorityClass.FREE, id="end of a range"),
        pytest.param({}, 8000, QosClass.BE, PriorityClass.BATCH, id="outside the ranges falls to QoS"),
        pytest.param({}, None, QosClass.SYSTEM, PriorityClass.PROD, id="system is prod"),
        pytest.param({}, None, QosClass.NONE, PriorityClass.NONE, id="nothing known"),
    ],
)
def test_gives_a_pod_its_priority_class(
    labels: dict[str, str], priority: int | None, qos: QosClass, expected: PriorityClass
) -> None:
    assert priority_class(labels, priority, qos) is expected


@pytest.mark.parametrize(
    ("labels", "kubernetes_qos", "expected"),
    [
        pytest.param({QOS_CLASS_LABEL: "LSE"}, KubernetesQos.BEST_EFFORT, QosClass.LSE, id="label first"),
        pytest.param({QOS_CLASS_LABEL: "best"}, KubernetesQos.BEST_EFFORT, QosClass.NONE, id="unknown label"),
        pytest.param({}, KubernetesQos.GUARANTEED, QosClass.LSR, id="guaranteed"),
        pytest.param({}, KubernetesQos.BEST_EFFORT, QosClass.BE, id="best effort"),
    ],
)
def test_gives_a_pod_its_qos_class(labels: dict[str, str], kubernetes_qos: KubernetesQos, expected: QosClass) -> None:
    assert qos_class(labels, kubernetes_qos) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param("0-5", 6, id="range"), pytest.param("1, 3,3-4", 3, id="overlap counts once")],
)
def test_counts_reserved_cpus(text: str, expected: int) -> None:
    assert reserved_cpu_count(text) == expected


@pytest.mark.parametrize("text", ["", "a", "5-2", "-1", "0-99999999999"])
def test_refuses_a_text_that_is_no_cpu_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"cpuset|invalid literal"):
        reserved_cpu_count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, ZERO_BATCH, id="absent"),
        pytest.param('{"resources":{"cpu":"2","memory":"5Gi"}}', amount(2_000, 5 * 2**30), id="quantities"),
        pytest.param('{"resources":{"cpu":"20"},"reservedCPUs":"0-9"}', amount(10_000, 0), id="CPU list wins"),
        pytest.param('{"resources":{"cpu":"two"}}', ZERO_BATCH, id="bad quantity"),
        pytest.param('{"reservedCPUs":"x"}', ZERO_BATCH, id="bad list"),
        pytest.param("[]", ZERO_BATCH, id="a list"),
        pytest.param("{", ZERO_BATCH, id="bad JSON"),
    ],
)
def test_reads_the_reservation_annotation(text: str | None, expected: BatchResources) -> None:
    assert annotated_reservation(text) == expected


def test_an_amplified_allocatable_reserves_nothing() -> None:
    assert kubelet_reservation(amount(10, 10), amount(20, 8)) == amount(0, 2)
