# SPDX-License-Identifier: Apache-2.0
"""Run all checks and print what they found. Nothing is written anywhere."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from yarn_copilot.cli import clusters
from yarn_copilot.cli.doctor import kubernetes, manager_checks, node_checks, observing
from yarn_copilot.cli.doctor.facts import ClusterFacts
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity, exit_code
from yarn_copilot.cli.tables import Table, print_table
from yarn_copilot.config.loading import load_settings, parse_settings
from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.identity.matching import Candidate
from yarn_copilot.errors import ConfigError, YarnCopilotError
from yarn_copilot.hadoop.configuration import ClusterFiles, read_cluster_files
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import find_credentials

CHECKS: Final[tuple[Callable[[ClusterFacts], Iterator[Finding]], ...]] = (
    manager_checks.reachable,
    manager_checks.admin_acl,
    manager_checks.version,
    manager_checks.transport,
    manager_checks.clock,
    manager_checks.calculator,
    node_checks.minimum,
    node_checks.registered,
    node_checks.dynamic_resources,
    node_checks.names,
    node_checks.matching,
)
_SEVERITY_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)


def doctor(config: Path | None, environ: Mapping[str, str], *, output: str, with_kubernetes: bool) -> int:
    """Check everything and print it.

    Args:
        config: settings file; None: the defaults with the environment's overrides.
        environ: the process's environment.
        output: `table`, `wide` or `json`.
        with_kubernetes: compare NodeManagers with pods and Nodes.

    Returns:
        The exit code: 0, 3 with warnings, 1 with errors.

    Raises:
        ConfigError: the settings file is wrong, or the Hadoop folder cannot be read.
    """
    settings = load_settings(config, environ) if config is not None else parse_settings(b"", "defaults", environ)
    findings = asyncio.run(
        examine(
            settings, environ, with_kubernetes=with_kubernetes, progress=_progress, resolve=observing.can_be_resolved
        )
    )
    if output == "json":
        print_json(findings)
    else:
        print_findings(findings, wide=output == "wide")
    return exit_code(findings)


async def examine(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    with_kubernetes: bool,
    progress: observing.Progress,
    resolve: Callable[[str], Awaitable[bool]],
) -> list[Finding]:
    """Run all checks on all clusters.

    Raises:
        ConfigError: the Hadoop folder cannot be read or describes no cluster.
    """
    files = read_cluster_files(settings.hadoop.conf_dir, clusters.surroundings(settings.hadoop, environ))
    findings = list(_file_findings(files, settings))
    seen = [
        await observing.observe(cluster, settings, progress=progress, resolve=resolve)
        for cluster in files.clusters.values()
    ]
    if with_kubernetes and seen:
        progress("Kubernetes: nodes and NodeManager pods")
        seen = await _with_kubernetes(seen, settings, environ, findings)
    for facts in seen:
        findings.extend(
            Finding(
                check=Check.CONFIGURATION, severity=Severity.WARNING, cluster=facts.cluster.id, found=sentence,
                why="what it says could not be checked", fix="mend the file",
            )
            for sentence in facts.unreadable_files
        )  # fmt: skip
        for check in CHECKS:
            findings.extend(_run_check(check, facts))
    return findings


def _file_findings(files: ClusterFiles, settings: Settings) -> Iterator[Finding]:
    for id_, error in files.errors.items():
        yield Finding(
            check=Check.CONFIGURATION, severity=Severity.ERROR, cluster=id_, where=str(settings.hadoop.conf_dir),
            found=error, why="this cluster is left out; the others are served", fix="mend the named key",
        )  # fmt: skip
    for id_, cluster in files.clusters.items():
        addresses = ", ".join(clusters.addresses_of(cluster, clusters.transport_of(settings.hadoop, id_)))
        yield Finding(
            check=Check.CONFIGURATION, severity=Severity.OK, cluster=id_, where=str(settings.hadoop.conf_dir),
            found=f"read; ResourceManager at {addresses or 'no known address'}",
        )  # fmt: skip


async def _with_kubernetes(
    seen: Sequence[ClusterFacts], settings: Settings, environ: Mapping[str, str], findings: list[Finding]
) -> list[ClusterFacts]:
    try:
        found = await _candidates(settings, environ)
    except YarnCopilotError as error:
        findings.append(
            Finding(
                check=Check.KUBERNETES, severity=Severity.WARNING, found=f"nodes and pods cannot be listed: {error}",
                why="whether NodeManagers match their pods could not be checked",
                fix="check kubernetes.kubeconfig and the rights to list nodes and pods, or use --no-kubernetes",
            )
        )  # fmt: skip
        return list(seen)
    reports = {facts.cluster.id: facts.reports for facts in seen}
    matches = kubernetes.match_clusters(found, reports, settings.node_managers)
    return [dataclasses.replace(facts, match=matches[facts.cluster.id]) for facts in seen]


async def _candidates(settings: Settings, environ: Mapping[str, str]) -> list[Candidate]:
    source = find_credentials(environ, kubeconfig=settings.kubernetes.kubeconfig, context=settings.kubernetes.context)
    client = KubeClient(source, settings.kubernetes)
    try:
        await source.load()
        return await kubernetes.read_candidates(client, settings.node_managers)
    finally:
        await client.aclose()


def _run_check(check: Callable[[ClusterFacts], Iterator[Finding]], facts: ClusterFacts) -> Iterator[Finding]:
    """Run one check; a key that it cannot read is a finding, not the end of the others."""
    try:
        yield from check(facts)
    except ConfigError as error:
        yield Finding(
            check=Check.CONFIGURATION, severity=Severity.ERROR, cluster=facts.cluster.id, found=str(error),
            why="what the key says could not be checked", fix="mend the named key",
        )  # fmt: skip


def print_json(findings: Sequence[Finding]) -> None:
    """Print one object: `findings` (every field as text), `counts` by severity, `exit_code`."""
    counts = {severity.value: sum(one.severity is severity for one in findings) for severity in Severity}
    document = {
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "counts": counts,
        "exit_code": exit_code(findings),
    }
    print(json.dumps(document, indent=1))


def print_findings(findings: Sequence[Finding], *, wide: bool) -> None:
    """Print a table, worst first, then for each problem why it matters and what to do."""
    ordered = sorted(findings, key=lambda finding: _SEVERITY_ORDER.index(finding.severity))
    columns = ("severity", "check", "cluster", "where", "found") if wide else ("severity", "check", "cluster", "found")
    rows = [[str(getattr(finding, column)) for column in columns] for finding in ordered]
    print_table(Table(columns, rows), empty="nothing was checked")
    for finding in ordered:
        if finding.why:
            where = f" ({finding.where})" if finding.where else ""
            print(f"\n{finding.severity}: {finding.check}{where}\n  {finding.found}\n  why: {finding.why}")
            print(f"  fix: {finding.fix}")
    counts = ", ".join(
        f"{number} {severity}" for severity in _SEVERITY_ORDER
        if (number := sum(finding.severity is severity for finding in findings))
    )  # fmt: skip
    print(f"\n{counts}")


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"looking at {text} ...", file=sys.stderr)
