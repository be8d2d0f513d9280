# SPDX-License-Identifier: Apache-2.0
"""Measure what the servers need for the same work without the product: the floor under its figures."""

from __future__ import annotations

from typing import Final

from benchmarks.scale import objects
from benchmarks.scale.stage import Stage
from lab.demo.propagation import percentile
from lab.errors import LabError
from lab.kubernetes import bodies
from lab.kubernetes.objects import NODE_METRICS

_PAGE_SIZE: Final = 500
_CLAIM_KEY: Final = "benchmark/claim"
_CLAIM_TEXT: Final = (
    '{"allocations":[{"name":"hadoop-yarn","priority":"koord-batch",'
    '"resources":{"kubernetes.io/batch-cpu":"1000","kubernetes.io/batch-memory":"1073741824"}}]}'
)
_TIMEOUT_SECONDS: Final = 180.0
_MIB: Final = 1 << 20


def measure_servers(stage: Stage) -> dict[str, float]:
    """Measure lists, a patch of every node, a watch of it, and an update of every NodeManager.

    Leaves every NodeManager at the capacity that it registered with, and every origin as it was.
    """
    with stage.progress.step("measuring the servers alone"):
        return {**_lists(stage), **_patches(stage), **_resource_manager(stage)}


def _lists(stage: Stage) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, path in (("pods", "/api/v1/pods"), ("nodes", "/api/v1/nodes"), ("node_metrics", NODE_METRICS)):
        found = stage.observer.ask("list", path=path, page_size=_PAGE_SIZE)
        figures[f"bare_list_{name}_seconds"] = found["seconds"]
        figures[f"bare_list_{name}_mib"] = found["bytes"] / _MIB
    return figures


def _patches(stage: Stage) -> dict[str, float]:
    nodes = stage.size.nodes
    claimed = stage.driver.ask("claim", key=_CLAIM_KEY, text=_CLAIM_TEXT, nodes=objects.node_names(nodes))
    figures = {"bare_claim_storm_seconds": claimed["seconds"]}
    stage.observer.begin("watch", path="/api/v1/nodes", events=2 * nodes, timeout_seconds=_TIMEOUT_SECONDS)
    stage.observer.read()
    changed = stage.driver.ask("annotate", key=bodies.ORIGIN_ANNOTATION, texts=objects.origins(nodes, 1))
    stage.driver.ask("annotate", key=bodies.ORIGIN_ANNOTATION, texts=objects.origins(nodes, 0))
    watched = stage.observer.read()
    if watched["events"] < 2 * nodes:
        raise LabError(f"a bare watch saw {watched['events']} of {2 * nodes} changes")
    figures["bare_mass_change_driver_seconds"] = changed["seconds"]
    return figures


def _resource_manager(stage: Stage) -> dict[str, float]:
    options = stage.lab.yarn.options
    floor = [options.floor_memory_mib, options.floor_vcores]
    nodes = stage.size.nodes
    read = stage.observer.ask("read_nodes", times=3)
    figures = {"bare_rm_read_seconds": read["seconds"]}
    grown = objects.targets(nodes, stage.size.pods, 0)
    for name, targets in (("grow", grown), ("shrink", dict.fromkeys(grown, floor))):
        stage.updates.updates()
        called = stage.observer.ask("update", targets=targets)
        stage.observer.begin("expect", targets=targets, timeout_seconds=_TIMEOUT_SECONDS, interval_seconds=0.05)
        stage.observer.read()
        seen = stage.observer.read()
        if seen["missing"]:
            raise LabError(f"the ResourceManager did not apply {len(seen['missing'])} bare updates")
        applied = [moment - called["began_at"] for moment in stage.updates.updates_of(targets).applied_at.values()]
        shown = [moment - called["began_at"] for moment in seen["seen_at"].values()]
        figures[f"bare_rm_{name}_call_seconds"] = called["seconds"]
        figures[f"bare_rm_{name}_shown_seconds"] = max(shown)
        figures[f"bare_rm_{name}_scheduler_applied_seconds"] = percentile(applied, 1.0) or 0.0
    return figures
