# SPDX-License-Identifier: Apache-2.0
"""Read what callers ask for, strictly: whatever is not exactly understood kills nobody; pure.

Bodies are JSON objects. Amounts on the socket are Kubernetes quantities by resource name; on the port they are whole
milli-cores and bytes. An ask above what the node has is a mistake of the caller (a unit, most likely), so it is
refused instead of ending everything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.quantities import QuantityError, exact_quantity
from batch_resources.resources import BatchResources
from nm_proxy.container_ids import is_container_id
from yarn_copilot.errors import YarnCopilotError

MAX_BODY_BYTES: Final = 65_536
CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final = (CPU, MEMORY, BATCH_CPU, BATCH_MEMORY)
_SHOWN: Final = 64


class AskError(YarnCopilotError):
    """Say what is wrong with an ask; answered with status 400."""


def parse_kill_container(body: bytes) -> str:
    """Read `{"containerID": "container_..."}`.

    Raises:
        AskError: anything else.
    """
    ask = _object(body, allowed=("containerID",))
    return checked_container_id(ask.get("containerID"))


def checked_container_id(value: object) -> str:
    """Check a container id that came from outside.

    Raises:
        AskError: it is missing or not one.
    """
    if not isinstance(value, str) or not value:
        raise AskError("containerID is missing; it must be the text of a YARN container id")
    if not is_container_id(value):
        raise AskError(f"containerID {value[:_SHOWN]!r} is not a YARN container id")
    return value


def parse_kill_by_resource(body: bytes, largest: BatchResources) -> BatchResources:
    """Read `{"resources": {"cpu": "4", "memory": "8Gi"}}`.

    Names: `cpu` (cores) or `kubernetes.io/batch-cpu` (milli-cores), `memory` or `kubernetes.io/batch-memory` (bytes).

    Args:
        body: as received.
        largest: what the node has.

    Raises:
        AskError: malformed, negative, of an unknown resource, of one resource twice, or larger than the node.
    """
    resources = _object(body, allowed=("resources",)).get("resources")
    if not isinstance(resources, Mapping) or not resources:
        raise AskError(f"resources is missing or empty; it must name amounts of {', '.join(RESOURCES)}")
    for name in resources:
        if name not in RESOURCES:
            raise AskError(f"resource {name[:_SHOWN]!r} is unknown; known are {', '.join(RESOURCES)}")
    for plain, batch in ((CPU, BATCH_CPU), (MEMORY, BATCH_MEMORY)):
        if plain in resources and batch in resources:
            raise AskError(f"{plain} and {batch} name the same resource; ask for one of them")
    cpu_milli = _amount(resources, CPU, factor=1000) + _amount(resources, BATCH_CPU)
    memory_bytes = _amount(resources, MEMORY) + _amount(resources, BATCH_MEMORY)
    return _bounded(BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes), largest)


def parse_kill(body: bytes, largest: BatchResources, longest_seconds: float) -> tuple[BatchResources, float]:
    """Read `{"resources": {"cpuMilli": 4000, "memoryBytes": 0}, "timeoutSeconds": 5}`.

    Args:
        body: as received.
        largest: what the node has.
        longest_seconds: the longest time a kill may take; also where none is given.

    Raises:
        AskError: malformed, negative, of an unknown resource, or larger than the node.
    """
    ask = _object(body, allowed=("resources", "timeoutSeconds"))
    resources = ask.get("resources")
    if not isinstance(resources, Mapping) or not resources:
        raise AskError("resources is missing or empty; it must have cpuMilli, memoryBytes or both")
    for name in resources:
        if name not in ("cpuMilli", "memoryBytes"):
            raise AskError(f"resource {name[:_SHOWN]!r} is unknown; known are cpuMilli, memoryBytes")
    asked = BatchResources(
        cpu_milli=_whole(resources.get("cpuMilli", 0), "cpuMilli"),
        memory_bytes=_whole(resources.get("memoryBytes", 0), "memoryBytes"),
    )
    return _bounded(asked, largest), _timeout(ask.get("timeoutSeconds"), longest_seconds)


def _object(body: bytes, *, allowed: tuple[str, ...]) -> dict[str, object]:
    if len(body) > MAX_BODY_BYTES:
        raise AskError(f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        document = json.loads(
            body, parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_without_repetition
        )
    except (ValueError, RecursionError) as error:
        raise AskError(f"the body is not JSON: {str(error)[:_SHOWN]}") from error
    if not isinstance(document, dict):
        raise AskError("the body must be a JSON object")
    for name in document:
        if name not in allowed:
            raise AskError(f"field {name[:_SHOWN]!r} is unknown; known are {', '.join(allowed)}")
    return document


def _refuse_constant(text: str) -> object:
    raise AskError(f"{text} is not a number")


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise AskError("a name appears twice in one object")
    return document


def _amount(resources: Mapping[str, object], name: str, *, factor: int = 1) -> int:
    value = resources.get(name, 0)
    if value is None or isinstance(value, bool):
        raise AskError(f"{name} is {value!r}, which is no quantity")
    try:
        exact = exact_quantity(value)
    except QuantityError as error:
        raise AskError(f"{name}: {error}") from error
    if exact < 0:
        raise AskError(f"{name} is negative")
    return math.ceil(exact * factor)


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise AskError(f"{name} must be a whole number")
    if value < 0:
        raise AskError(f"{name} is negative")
    return value


def _timeout(value: object, longest_seconds: float) -> float:
    if value is None:
        return longest_seconds
    try:
        # Numbers with a point arrive as text, so that amounts stay exact.
        seconds = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type] # anything else raises
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds <= longest_seconds:
        raise AskError(f"timeoutSeconds must be above 0 and at most {longest_seconds:g}")
    return seconds


def _bounded(asked: BatchResources, largest: BatchResources) -> BatchResources:
    if not asked.fits_in(largest):
        raise AskError(
            f"asked for more than this node has ({largest.cpu_milli} milli-cores, {largest.memory_bytes} bytes); "
            "check the unit"
        )
    return asked
