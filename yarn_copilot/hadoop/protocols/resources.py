# SPDX-License-Identifier: Apache-2.0
"""Convert resource vectors between protobuf and the model.

ResourceProto carries memory and vcores in fields 1 and 2 and, since Hadoop 3.1, every type again in
`resource_value_map`. A server that reads one zeroes each custom type that the map does not name.
"""

from __future__ import annotations

from typing import Final

from yarn_copilot.hadoop.model import Resource, ResourceInformation
from yarn_copilot.hadoop.proto import yarn_pb2

MEMORY_TYPE: Final = "memory-mb"
VCORES_TYPE: Final = "vcores"
_OWN_FIELDS: Final = frozenset((MEMORY_TYPE, VCORES_TYPE))

INT64_MAX: Final = (1 << 63) - 1
INT32_MAX: Final = (1 << 31) - 1


def from_proto(message: yarn_pb2.Resource) -> Resource:
    """Read a vector; custom types keep their order and units."""
    custom = tuple(
        ResourceInformation(entry.key, entry.value, entry.units)
        for entry in message.resource_value_map
        if entry.key not in _OWN_FIELDS
    )
    return Resource(message.memory_mib, message.virtual_cores, custom)


def fill_proto(message: yarn_pb2.Resource, resource: Resource) -> None:
    """Write a vector: memory and vcores in their own fields, custom types in the map.

    Raises:
        ValueError: an amount is negative or does not fit its field.
    """
    _check("memory-mb", resource.memory_mib, INT64_MAX)
    _check("vcores", resource.vcores, INT32_MAX)
    message.memory_mib = resource.memory_mib
    message.virtual_cores = resource.vcores
    for entry in resource.custom:
        _check(entry.name, entry.value, INT64_MAX)
        added = message.resource_value_map.add(key=entry.name, value=entry.value)
        if entry.units:
            added.units = entry.units


def _check(name: str, value: int, limit: int) -> None:
    if not 0 <= value <= limit:
        raise ValueError(f"{name} is {value}, allowed are 0 to {limit}")
