# SPDX-License-Identifier: Apache-2.0
"""Check what the stand-in for Koordinator decides, without a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ORIGIN_ANNOTATION, THIRD_PARTY_ANNOTATION
from batch_resources.koordinator.demand import HostApplicationUsage, NodeLoad, PodUsage
from batch_resources.koordinator.priority import PriorityClass
from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import BatchResources
from lab.errors import LabError
from lab.koordinator import node_metric
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.configuration import read_settings
from lab.koordinator.keyed_queue import KeyedQueue
from lab.koordinator.publication import calculate, prepare_node, reason_to_write, with_publication
from lab.koordinator.stand_in import scaled

_NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
_STRATEGY = Strategy(cpu_reclaim_percent=100, memory_reclaim_percent=100)
_GIB = 2**30


def test_a_report_is_read_back_as_it_was_written() -> None:
    load = NodeLoad(
        system_used=_amount(100, 5),
        pods=(PodUsage(key="online/a", priority=PriorityClass.PROD, used=_amount(1_500, 7)),),
        host_applications=(HostApplicationUsage(name="yarn", priority=PriorityClass.BATCH, used=_amount(1, 2)),),
    )

    written = {"status": node_metric.status(load, _NOW)}

    assert node_metric.read_load(written) == load
    assert node_metric.update_time(written) == _NOW
    assert written["status"]["nodeMetric"]["nodeUsage"]["resources"] == {"cpu": "1601m", "memory": "14"}


def test_batch_resources_are_what_the_reported_load_leaves() -> None:
    assert calculate(_node(), _metric(), _STRATEGY, now=_NOW) == _amount(7_000, 12 * _GIB)


@pytest.mark.parametrize(
    ("metric", "now"),
    [
        pytest.param(None, _NOW, id="no NodeMetric"),
        pytest.param({"status": {}}, _NOW, id="never reported"),
        pytest.param({}, _NOW, id="no status"),
        pytest.param("metric", _NOW + timedelta(minutes=15, seconds=1), id="too old"),
    ],
)
def test_a_node_without_a_fresh_report_is_degraded(metric: Any, now: datetime) -> None:
    found = _metric() if metric == "metric" else metric

    assert calculate(_node(), found, _STRATEGY, now=now) is None


def test_a_report_exactly_as_old_as_the_limit_still_counts() -> None:
    assert calculate(_node(), _metric(), _STRATEGY, now=_NOW + timedelta(minutes=15)) is not None


def test_a_report_with_a_time_and_no_usage_leaves_the_node_alone() -> None:
    broken = {"status": {"updateTime": "2026-01-01T12:00:00Z"}}

    with pytest.raises(KeyError):
        calculate(_node(), broken, _STRATEGY, now=_NOW)


def test_publishing_changes_annotation_capacity_and_allocatable_together_and_nothing_else() -> None:
    node = _node(third_party=_third_party("2k", "4Gi"))

    changed = with_publication(node, prepare_node(node, _amount(7_000, 12 * _GIB), None))

    assert changed["metadata"]["annotations"] == {
        THIRD_PARTY_ANNOTATION: _third_party("2k", "4Gi"),
        ORIGIN_ANNOTATION: '{"resources":{"kubernetes.io/batch-cpu":"7k","kubernetes.io/batch-memory":"12Gi"}}',
    }
    for part in ("capacity", "allocatable"):
        assert changed["status"][part] == {"cpu": "8", "memory": "16Gi", BATCH_CPU: "5k", BATCH_MEMORY: "8Gi"}
    assert node == _node(third_party=_third_party("2k", "4Gi"))


def test_resetting_removes_the_keys_and_writes_a_zero_origin() -> None:
    node = _node(batch=("5k", "8Gi"))

    changed = with_publication(node, prepare_node(node, None, None))

    assert changed["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi"}
    assert changed["metadata"]["annotations"][ORIGIN_ANNOTATION] == (
        '{"resources":{"kubernetes.io/batch-cpu":"0","kubernetes.io/batch-memory":"0"}}'
    )


@pytest.mark.parametrize(
    ("batch", "calculated", "age_seconds", "expected"),
    [
        pytest.param(("5k", "8Gi"), (5_000, 8 * _GIB), None, "first write since start", id="first"),
        pytest.param(("5k", "8Gi"), (5_000, 8 * _GIB), 300.5, "last write too long ago", id="old"),
        pytest.param(("5k", "8Gi"), (4_500, 8 * _GIB), 1.0, None, id="ten percent"),
        pytest.param(("5k", "8Gi"), (4_499, 8 * _GIB), 1.0, "allocatable moved enough", id="more than ten percent"),
        pytest.param(None, (5_000, 8 * _GIB), 1.0, "allocatable moved enough", id="keys appear"),
        pytest.param(("5k", "8Gi"), None, 1.0, "allocatable moved enough", id="keys disappear"),
        pytest.param(None, None, 1.0, None, id="still reset"),
    ],
)
def test_says_why_a_node_is_written(
    batch: tuple[str, str] | None,
    calculated: tuple[int, int] | None,
    age_seconds: float | None,
    expected: str | None,
) -> None:
    node = _node(batch=batch)
    prepared = prepare_node(node, None if calculated is None else _amount(*calculated), None)

    assert reason_to_write(node, prepared, age_seconds=age_seconds, strategy=_STRATEGY) == expected


def test_a_node_that_lost_one_key_is_written() -> None:
    node = _node(batch=("5k", "8Gi"))
    del node["status"]["allocatable"][BATCH_CPU]
    prepared = prepare_node(node, _amount(5_000, 8 * _GIB), None)

    assert reason_to_write(node, prepared, age_seconds=1.0, strategy=_STRATEGY) is not None


def test_a_falling_origin_is_hidden_while_third_parties_hold_everything() -> None:
    node = _node(batch=("0", "0"), third_party=_third_party("8k", "16Gi"))
    prepared = prepare_node(node, _amount(1_000, _GIB), None)

    assert reason_to_write(node, prepared, age_seconds=299.0, strategy=_STRATEGY) is None


def test_time_scale_shortens_times_and_not_the_ratio() -> None:
    assert scaled(Strategy(), 60) == replace(Strategy(), degrade_seconds=15.0, update_threshold_seconds=5.0)


async def test_a_name_in_work_waits_until_it_is_done_and_is_then_given_once() -> None:
    queue = KeyedQueue()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"

    queue.done("a")

    assert await queue.get() == "a"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await queue.get()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("time_scale: 0\n", "time_scale", id="out of range"),
        pytest.param("strategy: {cpu_policy: all}\n", "strategy.cpu_policy", id="unknown policy"),
        pytest.param("strategy: {speed: 1}\n", "strategy.speed", id="unknown key"),
        pytest.param("a: [\n", "stand-in.yaml", id="no YAML"),
    ],
)
def test_a_bad_configuration_is_refused_with_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "stand-in.yaml"
    path.write_text(text)

    with pytest.raises(LabError, match=words) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)


def test_an_empty_configuration_is_koordinators_default(tmp_path: Path) -> None:
    path = tmp_path / "stand-in.yaml"
    path.write_text("")

    assert read_settings(path).strategy.to_strategy() == Strategy()


def test_a_kubeconfig_gives_server_and_token_of_its_current_context(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "current-context: b\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}]\n"
        "clusters: [{name: b, cluster: {server: 'http://127.0.0.1:1/'}}]\n"
        "users: [{name: b, user: {token: secret}}]\n"
    )

    credentials = read_kubeconfig(path)

    assert (credentials.server, credentials.token, credentials.tls) == ("http://127.0.0.1:1", "secret", None)


def test_a_kubeconfig_without_its_current_context_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("current-context: b\ncontexts: []\nclusters: []\nusers: []\n")

    with pytest.raises(LabError, match="no usable current context"):
        read_kubeconfig(path)


def _amount(cpu_milli: int, memory_bytes: int) -> BatchResources:
    return BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)


def _metric() -> dict[str, Any]:
    used = PodUsage(key="online/node", priority=PriorityClass.PROD, used=_amount(1_000, 4 * _GIB))
    return {"status": node_metric.status(NodeLoad(pods=(used,)), _NOW)}


def _node(*, batch: tuple[str, str] | None = None, third_party: str | None = None) -> dict[str, Any]:
    quantities = {"cpu": "8", "memory": "16Gi"}
    if batch is not None:
        quantities |= {BATCH_CPU: batch[0], BATCH_MEMORY: batch[1]}
    annotations = {} if third_party is None else {THIRD_PARTY_ANNOTATION: third_party}
    return {
        "metadata": {"name": "node", "annotations": annotations},
        "status": {"capacity": dict(quantities), "allocatable": dict(quantities)},
    }


def _third_party(cpu: str, memory: str) -> str:
    return (
        '{"allocations":[{"name":"hadoop-yarn","priority":"koord-batch","resources":'
        f'{{"kubernetes.io/batch-cpu":"{cpu}","kubernetes.io/batch-memory":"{memory}"}}}}]}}'
    )
