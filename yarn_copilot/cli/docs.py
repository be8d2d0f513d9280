# SPDX-License-Identifier: Apache-2.0
"""Write the reference pages that come from the code: `python -m yarn_copilot.cli.docs docs`.

A developer's command, not part of `yarn-copilot`. A test compares the committed pages with what this writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.metrics import MetricWrapperBase

from batch_resources.annotations.catalogue import CATALOGUE
from yarn_copilot.config.loading import CONTROLLER
from yarn_copilot.config.reference import GENERATED, section_lines, write_pages
from yarn_copilot.config.rules import RULE_SENTENCES
from yarn_copilot.observability.exposition import COUNT_FAMILIES, NODE_MANAGER_FAMILIES, stage_families
from yarn_copilot.observability.metrics import Metrics

_CONFIGURATION_INTRO: Final = """# Configuration reference

The controller reads one YAML file (`yarn-copilot run --config FILE`), normally from a ConfigMap, and the Hadoop
configuration directory that it names. Every key has a default; an empty file is valid.

- Check a file before you use it: `yarn-copilot config check FILE`. It prints the values in force, or one line for each
  mistake (file, line, key, what is allowed) and ends with exit code 2.
- Start one: `yarn-copilot config show-defaults > config.yaml`.
- Unknown keys, duplicate keys, wrong types and wrong units are refused. Units are in the names (`_seconds`, `_bytes`,
  `_mib`, `_milli`); values are plain numbers: `5`, not `"5s"`.
- YAML is read by the 1.2 core schema: only `true` and `false` are booleans; aliases and tags are not allowed. The file
  may be 1 MiB long.
- A variable `YARN_COPILOT_<SECTION>__<KEY>` (two underscores) overrides a key of the file, for example
  `YARN_COPILOT_LOG__LEVEL=DEBUG`; an empty value is null where null is allowed. `--port` overrides both.

## Reload

The file is read every two seconds and compared by content, so that the symlink swap of a ConfigMap counts and a mere
touch does not. Keys marked *at once* take effect without a restart. A changed key that needs a restart is reported
(log, Event `ConfigurationNeedsRestart`, metric `yarn_copilot_config_fields_needing_restart`, `yarn-copilot status`) and
its old value stays in force. A file with a mistake changes nothing: the last good configuration stays in force and the
mistake is reported in the same places (`ConfigurationRejected`, `yarn_copilot_config_last_reload_successful` 0).
The files of the Hadoop configuration directory are watched too: a cluster whose files are added, changed or removed
comes, changes or goes without a restart, and one with a mistake stays as it was without touching the others (see
[hadoop.md](hadoop.md)).

## Rules across keys
"""

_METRICS_INTRO: Final = """# Metrics reference

`GET /metrics` on the controller's port gives Prometheus' text format 0.0.4. Every name begins with `yarn_copilot_`;
units are Prometheus' base units (seconds, bytes, cores). Unknown is not zero: an unknown figure has no sample.
Leader and standby serve the same figures from their own watches; join with `yarn_copilot_leader == 1`, or take the
maximum over replicas, where only one answer is wanted.

Beside them are the usual figures of the process, such as `process_resident_memory_bytes` and
`process_cpu_seconds_total`.

A loop that has nothing to do runs no cycle, so only `cluster_view` has a steadily fresh
`yarn_copilot_loop_last_success_timestamp_seconds`.
"""

_ANNOTATIONS_INTRO: Final = """# Annotations

All annotations that the bridge reads or writes. Orders for a Node are written with the operator's own credentials, best
by the commands (`yarn-copilot drain --help`), which check them first. An order is a list of `name=value` parts,
separated by semicolons; drain and pause may also be the word `true` alone.

- `cpu` is in cores (`4`, `3500m`), `memory` in bytes (`8Gi`), as Kubernetes quantities; whole milli-cores and bytes.
- `TIME` is RFC 3339 with an offset: `2026-12-02T03:00:00Z`. An order is void from `until` on; a `deadline` ends the
  waiting, not the drain.
- `TEXT` may have 256 characters and no semicolon.
- A text that breaks this is never guessed: YARN does not grow on the node and the reason `OrderMalformed` says what is
  wrong. An order is taken back by removing its annotation, not by `false`.
"""

_LABELS: Final[Mapping[str, str]] = {
    "cluster": "id of a YARN cluster: the part before `.yarn-site.xml`, or `default`",
    "error": "class of an error",
    "hash": "short hash of the settings in force",
    "kind": "nodes, pods or nodemetrics",
    "loop": "cluster_view, planning, node_capacity, third_party, fresh_reads, demand, queues or node_labels",
    "node": "name of the Kubernetes node",
    "node_id": "host:port of a NodeManager, as the ResourceManager lists it",
    "partition": "a YARN partition (node label); the default one is the empty text",
    "reason": "a reason; see operations.md",
    "result": "applied, conflict (tried again), refused or failed (unknown whether it was done)",
    "stage": "sent (to the ResourceManager) or applied (read back)",
    "target": "kubernetes (PATCH of a Node) or yarn (updateNodeResource)",
    "type": "Normal or Warning",
    "version": "version of the program",
}


def configuration_page() -> str:
    """Write docs/configuration.md."""
    lines = [GENERATED, _CONFIGURATION_INTRO]
    lines += [f"- {sentence}" for sentence in RULE_SENTENCES]
    lines += section_lines(CONTROLLER)
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Write docs/metrics.md."""
    lines = [GENERATED, _METRICS_INTRO, "## Pipeline, per node", ""]
    lines.append("One gauge for each stage and resource, label `node`, in the order in which they are computed.")
    lines += _table((name, "gauge", "node", text) for name, text, _ in stage_families())
    lines += ["", "## NodeManagers", ""]
    lines.append("What a ResourceManager says, label set (`cluster`, `node_id`, `node`).")
    lines += _table((name, "gauge", "cluster, node_id, node", text) for name, text in NODE_MANAGER_FAMILIES)
    lines += ["", "## Counts of nodes"]
    lines += _table((name, "gauge", "reason" if "reason" in name else "", text) for name, text in COUNT_FAMILIES)
    lines += ["", "## The controller itself"]
    lines += _table(_own_metrics())
    lines += ["", "## Labels", ""]
    lines += [f"- `{label}`: {text}." for label, text in _LABELS.items()]
    return "\n".join(lines) + "\n"


def annotations_page() -> str:
    """Write docs/annotations.md."""
    lines = [
        GENERATED,
        _ANNOTATIONS_INTRO,
        "| annotation | on | written by | value | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{key}` | {place} | {writer} | {grammar} | {meaning} |"
        for key, place, writer, grammar, meaning in CATALOGUE
    ]
    return "\n".join(lines) + "\n"


def pages() -> Mapping[str, str]:
    """Give every generated page by its file name."""
    return {
        "annotations.md": annotations_page(),
        "configuration.md": configuration_page(),
        "metrics.md": metrics_page(),
    }


def own_metric_labels() -> Mapping[str, tuple[str, ...]]:
    """Give the labels of each ordinary metric by its exposed name."""
    return {name: labels for name, _, labels, _ in _own()}


def known_labels() -> frozenset[str]:
    """Name the labels that the page explains."""
    return frozenset(_LABELS)


def _own() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    metrics = Metrics()
    for metric in (*vars(metrics).values(), *vars(metrics.demand).values()):
        if isinstance(metric, MetricWrapperBase):
            family = next(iter(metric.describe()))
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            info_label = {"yarn_copilot_config": ("hash",), "yarn_copilot_build": ("version",)}.get(family.name, ())
            labels = tuple(metric._labelnames) or info_label
            yield family.name + suffix, family.type, labels, family.documentation


def _own_metrics() -> Iterator[tuple[str, str, str, str]]:
    for name, kind, labels, text in _own():
        yield name, kind, ", ".join(labels), text


def _table(rows: Iterator[tuple[str, str, str, str]]) -> list[str]:
    lines = ["", "| metric | type | labels | meaning |", "|---|---|---|---|"]
    return lines + [f"| `{name}` | {kind} | {labels} | {text} |" for name, kind, labels, text in rows]


if __name__ == "__main__":
    sys.exit(write_pages("yarn_copilot.cli.docs", pages(), sys.argv[1:]))
