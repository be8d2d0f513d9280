# SPDX-License-Identifier: Apache-2.0
"""Decode `/ws/v1/cluster/nodes` of thousands of nodes fast: straight into types, where its shape is today's.

Anything that does not fit these types exactly goes the tolerant way of `decoding`, which says what is wrong or finds
another version's shape. Both give the same reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeState, Resource, ResourceInformation
from yarn_copilot.hadoop.rest import decoding

_STATES: Final = {state.name: state for state in NodeState}


class _Amount(Struct, gc=False):
    name: str
    value: int = 0
    units: str = ""


class _Amounts(Struct, gc=False):
    entries: list[_Amount] = msgspec.field(name="resourceInformation", default_factory=list)


class _Used(Struct, gc=False):
    types: _Amounts = msgspec.field(name="resourceInformations", default_factory=_Amounts)


class _Total(Struct, gc=False):
    memory: int
    vcores: int = msgspec.field(name="vCores")
    types: _Amounts = msgspec.field(name="resourceInformations", default_factory=_Amounts)


class _Node(Struct, gc=False):
    id: str
    state: str
    total: _Total = msgspec.field(name="totalResource")
    used: _Used = msgspec.field(name="usedResource", default_factory=_Used)
    http_address: str = msgspec.field(name="nodeHTTPAddress", default="")
    rack: str = ""
    used_memory: int = msgspec.field(name="usedMemoryMB", default=0)
    used_vcores: int = msgspec.field(name="usedVirtualCores", default=0)
    containers: int = msgspec.field(name="numContainers", default=0)
    last_health_update: int = msgspec.field(name="lastHealthUpdate", default=0)
    labels: list[str] = msgspec.field(name="nodeLabels", default_factory=list)


class _Nodes(Struct, gc=False):
    node: list[_Node]


class _Answer(Struct, gc=False):
    nodes: _Nodes


_DECODER: Final = msgspec.json.Decoder(_Answer)


def decode_node_list(body: bytes) -> list[NodeReport]:
    """Read the answer; the order is the server's.

    Raises:
        ProtocolViolationError: it is no JSON or has another shape.
    """
    try:
        return [_report(node) for node in _DECODER.decode(body).nodes.node]
    except (msgspec.DecodeError, KeyError, ValueError):
        return decoding.node_reports(decoding.decode_json(body))


def _report(node: _Node) -> NodeReport:
    total = node.total
    return NodeReport(
        node_id=NodeId.parse(node.id),
        state=_STATES[node.state],
        http_address=node.http_address,
        rack=node.rack,
        capability=Resource(total.memory, total.vcores, _custom(total.types.entries)),
        used=Resource(node.used_memory, node.used_vcores, _custom(node.used.types.entries)),
        containers=node.containers,
        last_health_report_millis=node.last_health_update,
        labels=tuple(node.labels),
    )


def _custom(amounts: Iterable[_Amount]) -> tuple[ResourceInformation, ...]:
    return tuple(
        ResourceInformation(amount.name, amount.value, amount.units)
        for amount in amounts
        if amount.name not in decoding.BUILT_IN_TYPES
    )
