# SPDX-License-Identifier: Apache-2.0
"""Tell whether a pod may run on a node, by nodeSelector, required node affinity and taints.

What kube-scheduler looks at besides (ports, volumes, spreading, affinity to pods, preferences) counts as fitting: the
answer decides where capacity is freed, not where the pod goes. Source: Kubernetes 1.37, component-helpers
scheduling/corev1 and nodeaffinity; plugins NodeAffinity, TaintToleration and NodeUnschedulable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
"""What `spec.unschedulable` (cordon) stands for; a pod that tolerates it may be put on a cordoned node."""

_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
_NAME_FIELD: Final = "metadata.name"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_INT64: Final = range(-(2**63), 2**63)


class Taint(Struct, frozen=True):
    """Hold one entry of `spec.taints`; effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


class Host(Struct, frozen=True, kw_only=True):
    """Hold what a pod's constraints are compared with.

    Attributes:
        labels: `metadata.labels`.
        taints: those that repel pods, the cordon included.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


class Requirement(Struct, frozen=True):
    """Hold one expression of a node selector term; operator is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, kw_only=True):
    """Hold one node selector term: everything in it has to hold; an empty one holds nowhere."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Toleration(Struct, frozen=True, kw_only=True):
    """Hold one toleration; an empty key with Exists tolerates every taint, an empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Placement(Struct, frozen=True, kw_only=True):
    """Hold where a pod may run.

    Attributes:
        node_selector: labels that the node must have, as sorted pairs.
        terms: required node affinity, of which one term has to hold; None without any.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


ANYWHERE: Final = Placement()


def repelling_taints(taints: tuple[Taint, ...], *, is_cordoned: bool) -> tuple[Taint, ...]:
    """Give the taints that keep pods away: not those that are a preference only, and the cordon's own."""
    repelling = tuple(taint for taint in taints if taint.effect in _REPELLING)
    cordon = Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")
    return (*repelling, cordon) if is_cordoned and cordon not in repelling else repelling


def may_run(placement: Placement, host: Host) -> bool:
    """Tell whether a pod with this placement may be put on the node."""
    labels = host.labels
    for key, value in placement.node_selector:
        if labels.get(key) != value:
            return False
    if placement.terms is not None and not any(_term_holds(term, host) for term in placement.terms):
        return False
    return all(_is_tolerated(taint, placement.tolerations) for taint in host.taints)


def named_nodes(placement: Placement) -> frozenset[str] | None:
    """Name the nodes to which a placement is tied, as DaemonSet pods are; None for one that is not."""
    if not placement.terms:
        return None
    names: set[str] = set()
    for term in placement.terms:
        tied = [item.values[0] for item in term.fields if _ties(item)]
        if not tied:
            return None
        names.update(tied)
    return frozenset(names)


def _ties(item: Requirement) -> bool:
    return item.key == _NAME_FIELD and item.operator == "In" and len(item.values) == 1


def _term_holds(term: Term, host: Host) -> bool:
    if not term.expressions and not term.fields:
        return False
    return all(_label_holds(item, host.labels) for item in term.expressions) and all(
        _field_holds(item, host.name) for item in term.fields
    )


def _label_holds(item: Requirement, labels: Mapping[str, str]) -> bool:
    """Compare one label; an expression that kube-scheduler cannot read makes its term hold nowhere."""
    value = labels.get(item.key)
    match item.operator:
        case "In":
            return value is not None and value in item.values
        case "NotIn":
            return bool(item.values) and (value is None or value not in item.values)
        case "Exists":
            return not item.values and value is not None
        case "DoesNotExist":
            return not item.values and value is None
        case "Gt" | "Lt":
            return _is_ordered(item, value)
        case _:
            return False


def _is_ordered(item: Requirement, value: str | None) -> bool:
    limit = _integer(item.values[0]) if len(item.values) == 1 else None
    number = None if value is None else _integer(value)
    if limit is None or number is None:
        return False
    return number > limit if item.operator == "Gt" else number < limit


def _integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None


def _field_holds(item: Requirement, name: str) -> bool:
    """Compare the node's name, the only field there is, with the one value that is allowed."""
    if item.key != _NAME_FIELD or len(item.values) != 1:
        return False
    match item.operator:
        case "In":
            return name == item.values[0]
        case "NotIn":
            return name != item.values[0]
        case _:
            return False


def _is_tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case _:  # Exists, or an operator of a later Kubernetes: what is not known counts as fitting
            return True
