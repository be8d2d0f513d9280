# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks at a small size: they end, and their results are complete. How fast is for `make bench` to say."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 280

SCALE_FIGURES = [
    "nodes",
    "pods",
    "first_convergence_seconds",
    "first_capacity_seconds",
    "first_claims_seconds",
    "mass_change_seconds",
    "mass_change_driver_seconds",
    "mass_change_cpu_seconds",
    "sent_p50_seconds",
    "sent_p99_seconds",
    "scheduler_applied_p50_seconds",
    "scheduler_applied_p99_seconds",
    "propagation_p50_seconds",
    "propagation_p99_seconds",
    "burst_mass_change_seconds",
    "burst_sent_p99_seconds",
    "burst_propagation_p99_seconds",
    "single_change_sent_p50_seconds",
    "single_change_propagation_p50_seconds",
    "resident_mib",
    "peak_resident_mib",
    "steady_seconds",
    "steady_cpu_percent",
    "steady_writes",
    "bare_list_pods_seconds",
    "bare_claim_storm_seconds",
    "bare_mass_change_driver_seconds",
    "bare_rm_read_seconds",
    "bare_rm_grow_call_seconds",
    "bare_rm_grow_shown_seconds",
    "bare_rm_grow_scheduler_applied_seconds",
]
PARENTING_FIGURES = [
    "idle_cpu_percent",
    "idle_resident_mib",
    *(
        f"together_{count}_{figure}_milliseconds"
        for count in (1, 20, 200)
        for figure in ("p50", "p99", "cpu", "waiting")
    ),
    "at_200_cpu_percent",
    "at_200_resident_mib",
]
PROPAGATION_FIGURES = [
    "sent_p50_seconds",
    "sent_p99_seconds",
    "propagation_p50_seconds",
    "propagation_p99_seconds",
    "claim_p50_seconds",
    "claim_p99_seconds",
]
PLANNING_FIGURES = [
    "nodes",
    "pods",
    "intake_seconds",
    "full_cycle_p50_seconds",
    "full_cycle_wall_p50_seconds",
    "one_percent_cycle_p99_seconds",
    "nodes_planned_by_an_equal_poll",
    "waiting_pods",
    "waiting_pods_served_seconds",
    "demand_at_rest_seconds",
    "explain_seconds",
]


HADOOP_FIGURES = [
    "list_answer_seconds",
    "list_bytes",
    "list_decode_first_cpu_seconds",
    "list_decode_unchanged_cpu_seconds",
    "list_memory_mib",
    "rest_list_bytes",
    "rest_list_decode_cpu_seconds",
    "rest_list_tolerant_decode_cpu_seconds",
    "update_all_call_seconds",
    "update_all_bytes",
    "update_all_peak_memory_mib",
    *(f"{kind}_per_second_{count}_in_flight" for kind in ("reads", "updates") for count in (1, 16, 64)),
]


def _run(folder: Path, module: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, "--results", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads((folder / f"{module.rpartition('.')[2]}.json").read_text())
    return document


def _check(document: dict[str, Any], name: str, figures: list[str]) -> None:
    assert document["name"] == name
    assert document["when"].endswith("+00:00")
    assert {"cpu_model", "cpus", "memory_mib", "kernel"} <= document["machine"].keys()
    assert {"yarn_copilot", "python", "kubernetes", "etcd", "hadoop"} <= document["versions"].keys()
    assert set(figures) <= document["figures"].keys()
    assert all(math.isfinite(value) for value in document["figures"].values())


@pytest.mark.timeout(TIMEOUT_SECONDS + 20)
def test_scale_benchmark_measures_every_figure_and_sees_no_write_at_rest(tmp_path: Path) -> None:
    size = ["--nodes", "50", "--pods", "200", "--steady-seconds", "3", "--single-changes", "2"]
    document = _run(tmp_path, "benchmarks.scale", *size)
    _check(document, "scale", SCALE_FIGURES)
    figures = document["figures"]
    assert (figures["nodes"], figures["pods"], figures["steady_writes"]) == (50, 200, 0)


@pytest.mark.timeout(TIMEOUT_SECONDS + 20)
def test_propagation_benchmark_measures_every_figure(tmp_path: Path) -> None:
    document = _run(tmp_path, "benchmarks.propagation", "--changes", "4")
    _check(document, "propagation", PROPAGATION_FIGURES)
    assert document["figures"]["changes"] == 4


@pytest.mark.timeout(TIMEOUT_SECONDS + 20)
def test_hadoop_benchmark_measures_every_figure(tmp_path: Path) -> None:
    document = _run(tmp_path, "benchmarks.hadoop", "--nodes", "30", "--seconds", "0.2")
    _check(document, "hadoop", [f"nodes_30_{name}" for name in HADOOP_FIGURES])
    assert document["figures"]["nodes_30_updates_per_second_16_in_flight"] > 0


def test_planning_benchmark_measures_every_figure_and_plans_nothing_without_a_change(tmp_path: Path) -> None:
    document = _run(tmp_path, "benchmarks.planning", "--nodes", "200", "--pods-per-node", "2")
    _check(document, "planning", PLANNING_FIGURES)
    figures = document["figures"]
    assert (figures["nodes"], figures["nodes_planned_by_an_equal_poll"]) == (200, 0)


@pytest.mark.timeout(TIMEOUT_SECONDS + 20)
def test_parenting_benchmark_measures_every_figure(tmp_path: Path) -> None:
    document = _run(tmp_path, "benchmarks.parenting", "--bursts", "1", "--rest-seconds", "1")
    _check(document, "parenting", PARENTING_FIGURES)
    assert all(document["figures"][f"together_{count}_p50_milliseconds"] > 0 for count in (1, 20, 200))
