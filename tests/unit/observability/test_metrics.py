# SPDX-License-Identifier: Apache-2.0
"""Metrics are valid Prometheus text, in base units, and rows per node are read when somebody scrapes."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from yarn_copilot.observability.exposition import escape_label, format_cores
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason
from yarn_copilot.observability.table import STAGES, MetricsTable, NodeManagerRow, PipelineRow


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, tuple(sorted(labels.items()))))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(wall_clock=lambda: 1700000000.0)


def test_every_name_has_the_prefix_but_the_usual_ones_of_the_process(metrics: Metrics) -> None:
    names = {name for name, _ in samples(metrics)}
    assert "process_resident_memory_bytes" in names
    assert all(name.startswith(("yarn_copilot_", "process_")) for name in names)


def test_no_family_appears_twice(metrics: Metrics) -> None:
    types = [line for line in metrics.render().decode().splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_every_stage_of_the_pipeline_is_a_gauge_in_base_units(metrics: Metrics) -> None:
    amounts = {stage: (1000 * number + 646, number << 30) for number, (stage, _) in enumerate(STAGES, start=1)}
    metrics.set_table_source(lambda: MetricsTable(pipeline=[PipelineRow("worker-1", **amounts)]))
    for stage, (cpu_milli, memory_bytes) in amounts.items():
        assert value(metrics, f"yarn_copilot_node_{stage}_cpu_cores", node="worker-1") == cpu_milli / 1000
        assert value(metrics, f"yarn_copilot_node_{stage}_memory_bytes", node="worker-1") == memory_bytes


def test_an_unknown_stage_has_no_sample_rather_than_zero(metrics: Metrics) -> None:
    metrics.set_table_source(lambda: MetricsTable(pipeline=[PipelineRow("a", claimed=(0, 0)), PipelineRow("b")]))
    assert value(metrics, "yarn_copilot_node_claimed_cpu_cores", node="a") == 0
    assert value(metrics, "yarn_copilot_node_claimed_cpu_cores", node="b") is None
    assert value(metrics, "yarn_copilot_node_origin_cpu_cores", node="a") is None


def test_the_stages_are_the_fields_of_a_row_in_order() -> None:
    assert PipelineRow._fields == ("node", *(stage for stage, _ in STAGES))


def test_node_managers_are_told_in_vcores_and_bytes(metrics: Metrics) -> None:
    row = NodeManagerRow("blue", "worker-1:8041", "worker-1", capacity=(234581, 60), used=(1024, 1))
    metrics.set_table_source(lambda: MetricsTable(node_managers=[row]))
    labels = {"cluster": "blue", "node_id": "worker-1:8041", "node": "worker-1"}
    assert value(metrics, "yarn_copilot_node_manager_capacity_vcores", **labels) == 60
    assert value(metrics, "yarn_copilot_node_manager_capacity_memory_bytes", **labels) == 245976006656
    assert value(metrics, "yarn_copilot_node_manager_used_vcores", **labels) == 1
    assert value(metrics, "yarn_copilot_node_manager_used_memory_bytes", **labels) == 1 << 30


def test_every_reason_has_a_count_also_at_zero(metrics: Metrics) -> None:
    metrics.set_table_source(lambda: MetricsTable(reasons={Reason.ORIGIN_DEGRADED.value: 3}, managed_nodes=9))
    for reason in Reason:
        expected = 3 if reason is Reason.ORIGIN_DEGRADED else 0
        assert value(metrics, "yarn_copilot_nodes_by_reason", reason=reason.value) == expected
    assert value(metrics, "yarn_copilot_nodes_managed") == 9


def test_the_table_is_asked_once_for_each_scrape(metrics: Metrics) -> None:
    asked: list[int] = []

    def source() -> MetricsTable:
        asked.append(1)
        return MetricsTable(pipeline=(PipelineRow(f"n{number}", origin=(1, 1)) for number in range(3)))

    metrics.set_table_source(source)
    metrics.render()
    metrics.render()
    assert len(asked) == 2


def test_label_values_are_escaped(metrics: Metrics) -> None:
    cluster = 'a"b\\c\nd'
    metrics.set_table_source(lambda: MetricsTable(node_managers=[NodeManagerRow(cluster, "h:1", "n", used=(0, 1))]))
    name = "yarn_copilot_node_manager_used_vcores"
    assert value(metrics, name, cluster=cluster, node_id="h:1", node="n") == 1
    assert escape_label(cluster) == 'a\\"b\\\\c\\nd'


@pytest.mark.parametrize(
    ("cpu_milli", "text"), [(0, "0"), (1, "0.001"), (60646, "60.646"), (60000, "60"), (10**15 + 1, "1000000000000.001")]
)
def test_cores_are_written_exactly(cpu_milli: int, text: str) -> None:
    assert format_cores(cpu_milli) == text


def test_loops_calls_and_states_are_counted(metrics: Metrics) -> None:
    metrics.observe_cycle("node_capacity", 0.02)
    metrics.count_error("node_capacity", "CallTimeoutError")
    metrics.count_error("node_capacity", ValueError("x"))
    metrics.observe_propagation("sent", 0.1)
    metrics.count_write("yarn", "applied", 3)
    metrics.count_event("Warning", "OriginMalformed")
    metrics.set_cluster("blue", reachable=False, age=None, pending_updates=2)
    metrics.set_watch("Node", silence_seconds=1.5)
    metrics.count_relist("Node")
    metrics.count_malformed("Pod")
    metrics.set_leader(True, 4)
    metrics.set_ready(True)
    metrics.set_build("1.2.3")
    expected = {
        ("yarn_copilot_loop_cycle_seconds_count", "loop=node_capacity"): 1,
        ("yarn_copilot_loop_last_success_timestamp_seconds", "loop=node_capacity"): 1700000000,
        ("yarn_copilot_loop_errors_total", "error=CallTimeoutError,loop=node_capacity"): 1,
        ("yarn_copilot_loop_errors_total", "error=ValueError,loop=node_capacity"): 1,
        ("yarn_copilot_capacity_propagation_seconds_count", "stage=sent"): 1,
        ("yarn_copilot_writes_total", "result=applied,target=yarn"): 3,
        ("yarn_copilot_events_total", "reason=OriginMalformed,type=Warning"): 1,
        ("yarn_copilot_cluster_reachable", "cluster=blue"): 0,
        ("yarn_copilot_cluster_pending_updates", "cluster=blue"): 2,
        ("yarn_copilot_watch_silence_seconds", "kind=Node"): 1.5,
        ("yarn_copilot_watch_relists_total", "kind=Node"): 1,
        ("yarn_copilot_watch_malformed_objects_total", "kind=Pod"): 1,
        ("yarn_copilot_leader", ""): 1,
        ("yarn_copilot_leader_term", ""): 4,
        ("yarn_copilot_ready", ""): 1,
        ("yarn_copilot_build_info", "version=1.2.3"): 1,
    }
    found = {
        (name, ",".join(f"{key}={text}" for key, text in labels)): number
        for (name, labels), number in samples(metrics).items()
    }
    assert {key: found.get(key) for key in expected} == expected
    assert value(metrics, "yarn_copilot_cluster_read_age_seconds", cluster="blue") is None


def test_a_refused_reload_keeps_the_hash_in_force(metrics: Metrics) -> None:
    metrics.set_reload(True, "abc", needs_restart=2)
    metrics.set_reload(False)
    assert value(metrics, "yarn_copilot_config_last_reload_successful") == 0
    assert value(metrics, "yarn_copilot_config_info", hash="abc") == 1
    assert value(metrics, "yarn_copilot_config_fields_needing_restart") == 2
    metrics.set_reload(True, "def")
    assert value(metrics, "yarn_copilot_config_info", hash="abc") is None
    assert value(metrics, "yarn_copilot_config_info", hash="def") == 1


def test_two_instances_do_not_share_anything() -> None:
    first, second = Metrics(), Metrics()
    first.count_relist("Node")
    assert value(second, "yarn_copilot_watch_relists_total", kind="Node") is None
