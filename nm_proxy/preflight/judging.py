# SPDX-License-Identifier: Apache-2.0
"""Run all checks over one look at the node, and write what they found; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from nm_proxy.preflight import cgroup_checks, node_checks
from nm_proxy.preflight.facts import NodeFacts
from nm_proxy.preflight.findings import Finding, Severity, exit_code

CHECKS: Final[tuple[Callable[[NodeFacts], Iterator[Finding]], ...]] = (
    node_checks.configuration,
    node_checks.pages,
    cgroup_checks.tree,
    cgroup_checks.writable,
    cgroup_checks.delegated,
    cgroup_checks.bounded,
    cgroup_checks.shadowed,
    cgroup_checks.internal_processes,
    cgroup_checks.taken,
    node_checks.host_name,
    node_checks.port,
    node_checks.resolution,
    node_checks.capacity,
    node_checks.programs,
    node_checks.hadoop_version,
    node_checks.recovery,
)
"""In the order of which the first error gives the exit code."""


def judge(facts: NodeFacts) -> list[Finding]:
    """Run every check."""
    return [finding for check in CHECKS for finding in check(facts)]


def as_text(findings: Sequence[Finding], *, shows_well: bool = True) -> str:
    """Write one line for what is well, a paragraph for what is not, and the exit code.

    Args:
        findings: of all checks.
        shows_well: False leaves the lines of what is well out, but counts them.
    """
    lines = []
    for one in findings:
        if one.severity is Severity.OK and not shows_well:
            continue
        lines.append(f"{one.severity.value:<7} {one.code.kind:<25} {one.where}: {one.found}")
        if one.severity is not Severity.OK:
            lines += [f"{'':<8}expected: {one.expected}", f"{'':<8}fix: {one.fix}"]
    code = exit_code(findings)
    counts = ", ".join(f"{sum(one.severity is severity for one in findings)} {severity.value}" for severity in Severity)
    lines.append(f"{counts}; exit code {int(code)} ({code.kind})")
    return "\n".join(lines)


def as_document(findings: Sequence[Finding]) -> dict[str, object]:
    """Give the same for JSON."""
    code = exit_code(findings)
    return {
        "exit_code": int(code),
        "findings": [
            {
                "kind": one.code.kind,
                "exit_code": int(one.code),
                "severity": one.severity.value,
                "where": one.where,
                "found": one.found,
                "expected": one.expected,
                "fix": one.fix,
            }
            for one in findings
        ],
    }
