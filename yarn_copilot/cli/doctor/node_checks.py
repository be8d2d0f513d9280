# SPDX-License-Identifier: Apache-2.0
"""Judge the NodeManagers of a cluster: sizes, names, and whether Kubernetes knows them."""

from __future__ import annotations

from collections.abc import Iterator

from yarn_copilot.cli.doctor.facts import ClusterFacts
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity
from yarn_copilot.cli.listing import some
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop.model import NodeId, Resource


def minimum_of(facts: ClusterFacts) -> tuple[Resource, str]:
    """Give the scheduler's minimum allocation and where it was read."""
    found, sources = [], []
    for key, default in ((keys.MINIMUM_MEMORY_MIB, 1024), (keys.MINIMUM_VCORES, 1)):
        told = facts.told(key)
        if told is not None and told.strip().isascii() and told.strip().isdigit():
            found.append(int(told))
            sources.append("the ResourceManager's /conf")
        else:
            values = facts.cluster.values
            found.append(default if values is None else values.integer(key, low=0, high=2**31 - 1, default=default))
            sources.append("yarn-site.xml here")
    return Resource(found[0], found[1]), " and ".join(dict.fromkeys(sources))


def minimum(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that the floor is not below what the ResourceManager accepts at registration."""
    least, source = minimum_of(facts)
    floor = facts.floor
    if least.memory_mib > floor.memory_mib or least.vcores > floor.vcores:
        yield Finding(
            check=Check.MINIMUM, severity=Severity.ERROR, cluster=facts.cluster.id, where=source,
            found=f"minimum allocation {_size(least)}, floor {_size(floor)} (yarn.floor_memory_mib, yarn.floor_vcores)",
            why="a NodeManager lowered to the floor is shut down by the ResourceManager when it registers again",
            fix=f"raise the floor, or lower {keys.MINIMUM_MEMORY_MIB} and {keys.MINIMUM_VCORES}",
        )  # fmt: skip
    else:
        yield Finding(
            check=Check.MINIMUM, severity=Severity.OK, cluster=facts.cluster.id, where=source,
            found=f"minimum allocation {_size(least)}, floor {_size(floor)}",
        )  # fmt: skip


def registered(facts: ClusterFacts) -> Iterator[Finding]:
    """Check what NodeManagers register with: not below the minimum, and not above the floor."""
    least, _ = minimum_of(facts)
    id_ = facts.cluster.id
    small = [(node, size) for node, size in facts.registered.items() if _is_below(size, least)]
    large = [(node, size) for node, size in facts.registered.items() if _is_below(facts.floor, size)]
    if small:
        yield Finding(
            check=Check.REGISTERED, severity=Severity.ERROR, cluster=id_, where=some(node for node, _ in small),
            found=f"{len(small)} NodeManagers register with less than {_size(least)}, for example {_size(small[0][1])}",
            why="the ResourceManager shuts them down at their next registration",
            fix=f"raise {keys.NODE_MEMORY_MIB} and {keys.NODE_VCORES}, or lower the minimum allocation",
        )  # fmt: skip
    if large:
        yield Finding(
            check=Check.REGISTERED, severity=Severity.WARNING, cluster=id_, where=some(node for node, _ in large),
            found=f"{len(large)} NodeManagers register with more than the floor {_size(facts.floor)}, "
            f"for example {_size(large[0][1])}",
            why="after each start they offer that much to YARN before the first update can lower it, whatever "
            "Kubernetes has booked meanwhile",
            fix=f"set {keys.NODE_MEMORY_MIB} and {keys.NODE_VCORES} to the floor (at least the minimum allocation)",
        )  # fmt: skip
    if facts.registered and not small and not large:
        yield Finding(
            check=Check.REGISTERED, severity=Severity.OK, cluster=id_,
            found=f"{len(facts.registered)} NodeManagers register with the floor",
        )  # fmt: skip
    if facts.silent_managers:
        yield Finding(
            check=Check.REGISTERED, severity=Severity.NOTE, cluster=id_, where=some(facts.silent_managers),
            found=f"{len(facts.silent_managers)} NodeManagers did not tell their configuration over HTTP",
            why="what they register with is not known", fix=f"look at {keys.NODE_MEMORY_MIB} by hand",
        )  # fmt: skip


def _is_below(size: Resource, least: Resource) -> bool:
    return size.memory_mib < least.memory_mib or size.vcores < least.vcores


def _size(resource: Resource) -> str:
    return f"{resource.memory_mib} MiB and {resource.vcores} vcores"


def dynamic_resources(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that no second mechanism sets capacities of the same nodes."""
    file = facts.dynamic_resources
    if file is None or not file.nodes:
        return
    listed = {str(report.node_id) for report in facts.reports or ()}
    overlap = [node for node in file.nodes if node in listed]
    yield Finding(
        check=Check.DYNAMIC_RESOURCES, severity=Severity.ERROR if overlap else Severity.WARNING,
        cluster=facts.cluster.id, where=str(file.path),
        found=f"lists {some(overlap or file.nodes)}" + ("" if overlap else _why_no_overlap(facts)),
        why="the ResourceManager tells these NodeManagers the file's values at each heartbeat: both disagree for ever",
        fix=f"remove these nodes from {keys.DYNAMIC_NODES} and run yarn rmadmin -refreshNodesResources",
    )  # fmt: skip


def _why_no_overlap(facts: ClusterFacts) -> str:
    if facts.reports is None:
        return "; whether these are registered cannot be told, since the node list could not be read"
    return ", none of which is registered now"


def names(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that the NodeManagers' host names mean something here."""
    if facts.unresolvable:
        yield Finding(
            check=Check.NAMES, severity=Severity.WARNING, cluster=facts.cluster.id, where=some(facts.unresolvable),
            found=f"{len(facts.unresolvable)} host names of NodeManagers cannot be resolved from here",
            why="if the ResourceManager cannot resolve them either, applications hang at their first container; the "
            "NodeManagers' own web services are out of reach from here",
            fix="give NodeManager pods a headless Service with publishNotReadyAddresses, or make the DNS known here",
        )  # fmt: skip
    elif facts.reports:
        yield Finding(
            check=Check.NAMES, severity=Severity.OK, cluster=facts.cluster.id,
            found="the host names of NodeManagers can be resolved",
        )  # fmt: skip


def matching(facts: ClusterFacts) -> Iterator[Finding]:
    """Check that NodeManagers and pods find each other."""
    match, id_ = facts.match, facts.cluster.id
    if match is None or facts.reports is None:
        return
    active = [report.node_id for report in facts.reports if report.state.is_active]
    strangers = [node for node in active if node not in match.matched]
    if strangers:
        yield Finding(
            check=Check.MATCHING, severity=Severity.WARNING, cluster=id_, where=some(strangers),
            found=f"{len(strangers)} of {len(active)} NodeManagers match no pod and no Node",
            why="they keep the capacity that they registered with, and what they use is not told to Koordinator",
            fix=_how_to_match(strangers),
        )  # fmt: skip
    if match.unmatched_sources:
        yield Finding(
            check=Check.MATCHING, severity=Severity.WARNING, cluster=id_, where=some(match.unmatched_sources),
            found=f"{len(match.unmatched_sources)} pods or Nodes stand for a NodeManager that is not registered",
            why="they get no capacity until it is",
            fix="compare their names with `yarn node -list -all`; the annotation yarn.hadoop.apache.org/node-id "
            "(host:port) decides where names differ",
        )  # fmt: skip
    if match.unknown_clusters:
        yield Finding(
            check=Check.MATCHING, severity=Severity.ERROR, cluster=id_, where=some(match.unknown_clusters),
            found=f"{len(match.unknown_clusters)} NodeManagers name a YARN cluster that is not configured",
            why="they get no capacity",
            fix="mend the annotation yarn.hadoop.apache.org/cluster-id, or add the cluster's yarn-site.xml",
        )  # fmt: skip
    if not (strangers or match.unmatched_sources or match.unknown_clusters):
        yield Finding(
            check=Check.MATCHING, severity=Severity.OK, cluster=id_,
            found=f"{len(match.matched)} NodeManagers match their pods or Nodes",
        )  # fmt: skip


def _how_to_match(strangers: list[NodeId]) -> str:
    return (
        "let node_managers.pod_selector (or host_node_selector) choose them; where host names differ, annotate the pod "
        f"with yarn.hadoop.apache.org/node-id, for example {strangers[0]}"
    )
