# SPDX-License-Identifier: Apache-2.0
"""Decide which partitions and attributes of NodeManagers differ from what the labels of their Nodes say. No I/O.

A label that is absent, or empty, means the default partition and no attribute. Attributes that no rule names are
somebody else's and stay.

The ResourceManager accepts an addition of an attribute that a host has already, and keeps the old value (Hadoop 3.3 to
3.5). Only a replacement changes a value, and it replaces all attributes of the prefix, so it names those of others too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarn_copilot.hadoop.model import NodeAttribute, NodeId

_PREFIX: Final = NodeAttribute("", "").prefix
"""Those that administrators set, in difference to those that NodeManagers report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRules:
    """Hold what is mapped: the label that names the partition, and attribute names by label key."""

    partition_label: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything is mapped."""
        return self.partition_label is not None or bool(self.attributes)

    @property
    def keys(self) -> tuple[str, ...]:
        """Name the labels that matter."""
        return (*(() if self.partition_label is None else (self.partition_label,)), *self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Hold one NodeManager, the Kubernetes node that it is on, and that node's labels."""

    node: str
    node_id: NodeId
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChanges:
    """Hold what differs.

    Attributes:
        partitions: NodeManagers by the partition that they should be in; the default one is empty text.
        added: attributes to add, by host.
        replaced: all attributes with our prefix that a host is to have, others' included, where a value changes.
        removed: attributes to take away, by host.
    """

    partitions: Mapping[str, Sequence[Labelled]] = field(default_factory=dict)
    added: Mapping[str, Sequence[NodeAttribute]] = field(default_factory=dict)
    replaced: Mapping[str, Sequence[NodeAttribute]] = field(default_factory=dict)
    removed: Mapping[str, Sequence[NodeAttribute]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.partitions or self.added or self.replaced or self.removed)


def plan_labels(
    managers: Iterable[Labelled],
    rules: LabelRules,
    *,
    partitions: Mapping[NodeId, Sequence[str]],
    attributes: Mapping[str, Sequence[NodeAttribute]],
) -> LabelChanges:
    """Compare what the labels say with what the ResourceManager shows.

    Args:
        managers: the NodeManagers of one cluster.
        rules: what is mapped.
        partitions: labels of the NodeManagers that have some; a port of 0 stands for a whole host.
        attributes: attributes of the hosts that have some.
    """
    moved: dict[str, list[Labelled]] = {}
    added: dict[str, list[NodeAttribute]] = {}
    replaced: dict[str, list[NodeAttribute]] = {}
    removed: dict[str, list[NodeAttribute]] = {}
    for manager in managers:
        host = manager.node_id.host
        if rules.partition_label is not None:
            wanted = manager.labels.get(rules.partition_label, "")
            held = partitions.get(manager.node_id) or partitions.get(NodeId(host, 0)) or ()
            if tuple(held) != ((wanted,) if wanted else ()):
                moved.setdefault(wanted, []).append(manager)
        values = {each.name: each.value for each in attributes.get(host, ()) if each.prefix == _PREFIX}
        aim = _wanted_values(manager, rules, values)
        if any(aim[name] != values[name] for name in aim.keys() & values.keys()):
            replaced[host] = _attributes(aim, aim)
            continue
        if new := aim.keys() - values.keys():
            added[host] = _attributes(aim, new)
        if gone := values.keys() - aim.keys():
            removed[host] = _attributes(values, gone)
    return LabelChanges(partitions=moved, added=added, replaced=replaced, removed=removed)


def _wanted_values(manager: Labelled, rules: LabelRules, held: Mapping[str, str]) -> dict[str, str]:
    """Give the attributes with our prefix that a host is to have: those of others as they are, ours by its labels."""
    mapped = {name: manager.labels.get(key, "") for key, name in rules.attributes.items()}
    ours = {name: value for name, value in mapped.items() if value}
    return {**{name: value for name, value in held.items() if name not in mapped}, **ours}


def _attributes(values: Mapping[str, str], names: Iterable[str]) -> list[NodeAttribute]:
    return [NodeAttribute(name, values[name]) for name in sorted(names)]
