# SPDX-License-Identifier: Apache-2.0
"""Read where a pod may run from the parts of its spec that are kept as raw JSON until a pod waits for a node.

Source: core/v1 Affinity, NodeSelectorTerm, Toleration. Most pods carry the same few texts, so each is read once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from batch_resources.demand.placement import ANYWHERE, Placement, Requirement, Term, Toleration
from yarn_copilot.kube.model import PodSpec

_REMEMBERED: Final = 4096


class _Expression(Struct, frozen=True):
    key: str
    operator: str
    values: list[str] | None = None


class _Term(Struct, frozen=True):
    matchExpressions: list[_Expression] | None = None
    matchFields: list[_Expression] | None = None


class _NodeSelector(Struct, frozen=True):
    nodeSelectorTerms: list[_Term] | None = None


class _NodeAffinity(Struct, frozen=True):
    requiredDuringSchedulingIgnoredDuringExecution: _NodeSelector | None = None


class _Affinity(Struct, frozen=True):
    nodeAffinity: _NodeAffinity | None = None


class _Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


_SELECTOR: Final = msgspec.json.Decoder(dict[str, str] | None)
_AFFINITY: Final = msgspec.json.Decoder(_Affinity | None)
_TOLERATIONS: Final = msgspec.json.Decoder(list[_Toleration] | None)
_GATES: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


def is_gated(spec: PodSpec) -> bool:
    """Tell whether a pod has scheduling gates: kube-scheduler does not look at it yet, so it waits for no room."""
    text = bytes(spec.schedulingGates)
    return bool(text) and bool(_GATES.decode(text))


def placement_of(spec: PodSpec) -> Placement:
    """Give where a pod may run; constraints that cannot be read count as none."""
    return _placement(bytes(spec.nodeSelector), bytes(spec.affinity), bytes(spec.tolerations))


@lru_cache(maxsize=_REMEMBERED)
def _placement(selector_text: bytes, affinity_text: bytes, tolerations_text: bytes) -> Placement:
    try:
        selector = (_SELECTOR.decode(selector_text) if selector_text else None) or {}
        affinity = _AFFINITY.decode(affinity_text) if affinity_text else None
        tolerations = (_TOLERATIONS.decode(tolerations_text) if tolerations_text else None) or []
    except msgspec.MsgspecError:
        return ANYWHERE
    return Placement(
        node_selector=tuple(sorted(selector.items())),
        terms=_terms(affinity),
        tolerations=tuple(
            Toleration(key=item.key, operator=item.operator, value=item.value, effect=item.effect)
            for item in tolerations
        ),
    )


def _terms(affinity: _Affinity | None) -> tuple[Term, ...] | None:
    node = None if affinity is None else affinity.nodeAffinity
    required = None if node is None else node.requiredDuringSchedulingIgnoredDuringExecution
    if required is None:
        return None
    return tuple(
        Term(expressions=_requirements(term.matchExpressions), fields=_requirements(term.matchFields))
        for term in required.nodeSelectorTerms or ()
    )


def _requirements(expressions: list[_Expression] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(item.key, item.operator, tuple(item.values or ())) for item in expressions or ())
