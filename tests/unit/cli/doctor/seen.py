# SPDX-License-Identifier: Apache-2.0
"""Make facts of a healthy cluster, to be spoiled by tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from yarn_copilot.cli.doctor.facts import ClusterFacts, ManagerFacts, MatchFacts, Role, SchedulerFile
from yarn_copilot.cli.doctor.findings import Finding, Severity
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeState, Resource

NM1, NM2 = NodeId("nm-1", 8041), NodeId("nm-2", 8041)
NOW = 1_700_000_000.0
TOLD = {
    keys.ADMIN_ACL: "yarn",
    keys.ACL_ENABLED: "true",
    keys.MINIMUM_MEMORY_MIB: "1024",
    keys.MINIMUM_VCORES: "1",
    keys.SCHEDULER_CLASS: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
}
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def cluster(**changes: Any) -> ClusterConfiguration:
    """Give a cluster with one ResourceManager."""
    address = ResourceManagerAddresses(rm_id="", client=Address("rm", 8032), admin=Address("rm", 8033))
    return dataclasses.replace(ClusterConfiguration(id="one", resource_managers=(address,)), **changes)


def manager(**changes: Any) -> ManagerFacts:
    """Give an active ResourceManager without fault."""
    good = ManagerFacts(
        rm_id="rm1", address="rm:8033", role=Role.ACTIVE, web_address="rm:8088", version="3.5.0",
        clock_ahead_seconds=0.4, properties=TOLD,
    )  # fmt: skip
    return dataclasses.replace(good, **changes)


def report(node_id: NodeId, **changes: Any) -> NodeReport:
    """Give a running node."""
    fields = {
        "state": NodeState.RUNNING, "http_address": "", "rack": "", "capability": Resource(1024, 1),
        "used": Resource(0, 0), "containers": 0, "last_health_report_millis": int(NOW * 1000), **changes,
    }  # fmt: skip
    return NodeReport(node_id=node_id, **fields)


def facts(**changes: Any) -> ClusterFacts:
    """Give a cluster in which all is well."""
    good = ClusterFacts(
        cluster=cluster(),
        managers=(manager(),),
        reports=(report(NM1), report(NM2)),
        registered={NM1: Resource(1024, 1), NM2: Resource(1024, 1)},
        scheduler_file=SchedulerFile(path=Path("capacity-scheduler.xml"), calculator=DOMINANT),
        match=MatchFacts(matched=frozenset((NM1, NM2)), unmatched_sources=()),
        now=NOW,
    )
    return dataclasses.replace(good, **changes)


def problems(check: Callable[[ClusterFacts], Iterator[Finding]], seen: ClusterFacts) -> list[Finding]:
    """Run a check and give what is not well; each of these must say why it matters and how to mend it."""
    found = [finding for finding in check(seen) if finding.severity is not Severity.OK]
    for finding in found:
        assert finding.why, finding
        assert finding.fix, finding
        assert finding.cluster == "one", finding
    return found
