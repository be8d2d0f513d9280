# SPDX-License-Identifier: Apache-2.0
"""Each fault of NodeManagers is found and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.doctor.seen import NM1, NM2, TOLD, cluster, facts, manager, problems, report
from yarn_copilot.cli.doctor import kubernetes, node_checks
from yarn_copilot.cli.doctor.facts import DynamicResources, MatchFacts
from yarn_copilot.cli.doctor.findings import Severity
from yarn_copilot.config.settings import NodeManagerSettings
from yarn_copilot.controller.identity.matching import Candidate
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration
from yarn_copilot.hadoop.model import NodeState, Resource
from yarn_copilot.hadoop.xmlfile import Property


def test_a_minimum_allocation_above_the_floor_is_an_error() -> None:
    told = {**TOLD, keys.MINIMUM_MEMORY_MIB: "2048"}
    (finding,) = problems(node_checks.minimum, facts(managers=(manager(properties=told),)))
    assert finding.severity is Severity.ERROR
    assert "2048 MiB" in finding.found
    assert finding.where == "the ResourceManager's /conf"


def test_the_minimum_comes_from_the_files_where_the_resource_manager_does_not_tell() -> None:
    path = Path("yarn-site.xml")
    values = HadoopConfiguration(
        core_site=(), yarn_site=[Property(keys.MINIMUM_VCORES, "2", False, path)], main_file=path, environ={},
        system_properties={},
    )  # fmt: skip
    seen = facts(managers=(manager(properties={}),), cluster=cluster(values=values))
    (finding,) = problems(node_checks.minimum, seen)
    assert "1024 MiB and 2 vcores" in finding.found
    assert finding.where == "yarn-site.xml here"


def test_node_managers_that_register_above_the_floor_are_a_warning() -> None:
    seen = facts(registered={NM1: Resource(1024, 1), NM2: Resource(8192, 1)})
    (finding,) = problems(node_checks.registered, seen)
    assert (finding.severity, finding.where) == (Severity.WARNING, str(NM2))


def test_node_managers_that_register_below_the_minimum_are_an_error() -> None:
    (finding,) = problems(node_checks.registered, facts(registered={NM1: Resource(512, 1)}))
    assert (finding.severity, finding.where) == (Severity.ERROR, str(NM1))


def test_node_managers_that_do_not_tell_are_a_note() -> None:
    (finding,) = problems(node_checks.registered, facts(registered={}, silent_managers=(NM1,)))
    assert finding.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("nodes", "severity"), [((str(NM1), "x:1"), Severity.ERROR), (("x:1",), Severity.WARNING)], ids=["same", "others"]
)
def test_a_dynamic_resources_file_is_told_as_an_error_where_it_lists_our_nodes(
    nodes: tuple[str, ...], severity: Severity
) -> None:
    file = DynamicResources(path=Path("/conf/dynamic-resources.xml"), nodes=nodes)
    (finding,) = problems(node_checks.dynamic_resources, facts(dynamic_resources=file))
    assert (finding.severity, finding.where) == (severity, "/conf/dynamic-resources.xml")


def test_an_empty_dynamic_resources_file_is_no_problem() -> None:
    file = DynamicResources(path=Path("x"), nodes=())
    assert problems(node_checks.dynamic_resources, facts(dynamic_resources=file)) == []


def test_host_names_that_mean_nothing_here_are_a_warning() -> None:
    (finding,) = problems(node_checks.names, facts(unresolvable=("nm-1",)))
    assert (finding.severity, finding.where) == (Severity.WARNING, "nm-1")


def test_node_managers_that_match_no_pod_are_a_warning_lost_ones_are_not() -> None:
    match = MatchFacts(matched=frozenset((NM1,)), unmatched_sources=())
    (finding,) = problems(node_checks.matching, facts(match=match))
    assert (finding.where, finding.found) == (str(NM2), "1 of 2 NodeManagers match no pod and no Node")
    lost = facts(match=match, reports=(report(NM1), report(NM2, state=NodeState.LOST)))
    assert problems(node_checks.matching, lost) == []


def test_pods_without_a_registered_node_manager_and_unknown_clusters_are_told() -> None:
    match = MatchFacts(matched=frozenset((NM1, NM2)), unmatched_sources=("pod a/b",), unknown_clusters=("pod a/c (x)",))
    unmatched, unknown = problems(node_checks.matching, facts(match=match))
    assert (unmatched.where, unknown.where) == ("pod a/b", "pod a/c (x)")


def candidate(source: str, *names: str, cluster: str | None = None) -> Candidate:
    return Candidate(source=source, cluster=cluster, override=None, names=(names,), first_label=None, is_pod=True)


def test_candidates_are_matched_within_their_cluster() -> None:
    found = [
        candidate("pod 1", "nm-1"),
        candidate("pod 2", "nm-2", cluster="b"),
        candidate("pod 3", "gone"),
        candidate("pod 4", "nm-1", cluster="nope"),
    ]
    reports = {"a": [report(NM1)], "b": [report(NM2)]}

    outcome = kubernetes.match_clusters(found, reports, NodeManagerSettings(default_cluster="a"))

    assert outcome["a"].matched == {NM1}
    assert outcome["a"].unmatched_sources == ("pod 3",)
    assert outcome["a"].unknown_clusters == ("pod 4 (nope)",)
    assert outcome["b"].matched == {NM2}
    assert outcome["b"].unknown_clusters == ()


def test_the_only_cluster_takes_candidates_without_annotation() -> None:
    outcome = kubernetes.match_clusters([candidate("pod 1", "nm-1")], {"x": [report(NM1)]}, NodeManagerSettings())
    assert outcome["x"].matched == {NM1}
