# SPDX-License-Identifier: Apache-2.0
"""Account pods as kube-scheduler books them, for the two batch resources.

Source: k8s.io/component-helpers resource.PodRequests (KEP-753, sidecar containers). koordlet and the
`extended-resource-spec` annotation count differently; what kube-scheduler subtracts is the only figure that
matters for the ledger. Pod-level `spec.resources` never applies to extended resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, Final, Protocol

from batch_resources import quantities
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.quantities import INT64_MAX, QuantityError
from batch_resources.resources import BatchResources

_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})

_Number = int | Fraction


class Requirements(Protocol):
    """Look like `resources` of a container."""

    @property
    def requests(self) -> Mapping[str, Any]:
        """Give quantities by resource name."""


class Container(Protocol):
    """Look like an entry of `spec.containers` or `spec.initContainers`."""

    @property
    def resources(self) -> Requirements:
        """Give what the container asks for."""

    @property
    def restartPolicy(self) -> str | None:
        """Give `Always` for a sidecar among the init containers."""


class PodSpec(Protocol):
    """Look like `spec` of a pod."""

    @property
    def containers(self) -> Sequence[Container]:
        """Give the main containers."""

    @property
    def initContainers(self) -> Sequence[Container]:
        """Give the init containers and sidecars, in order."""

    @property
    def overhead(self) -> Mapping[str, Any]:
        """Give what the runtime class adds."""


class Pod(Protocol):
    """Look like a v1 Pod."""

    @property
    def spec(self) -> PodSpec:
        """Give the specification."""


class PodRequestError(ValueError):
    """Say which container of a pod has which unreadable request."""


def is_booked(node_name: str, phase: str) -> bool:
    """Tell whether kube-scheduler holds room for a pod: it has a node and has not ended.

    Terminating pods (with a deletionTimestamp) and pods of phase Pending or Unknown are booked as well.

    Args:
        node_name: `spec.nodeName`, empty when not bound.
        phase: `status.phase`.
    """
    return bool(node_name) and phase not in _TERMINAL_PHASES


def pod_batch_request(pod: Pod) -> BatchResources:
    """Compute what kube-scheduler subtracts from a node for a pod.

    Containers and sidecars run together; before them each init container runs together with the sidecars that
    were started before it. The larger need counts, plus overhead; the sum is rounded up once, as the scheduler does.

    Returns:
        Milli-cores and bytes.

    Raises:
        PodRequestError: a quantity is malformed, negative or beyond 64 bits; the message names the container by
            its path and shows the text.
    """
    spec = pod.spec
    return BatchResources(cpu_milli=_request(spec, BATCH_CPU), memory_bytes=_request(spec, BATCH_MEMORY))


def _request(spec: PodSpec, key: str) -> int:
    running: _Number = 0
    for index, container in enumerate(spec.containers):
        value = container.resources.requests.get(key)
        if value is not None:
            running += _amount(value, key, "containers", index)
    if spec.initContainers:
        running = _with_init_containers(spec.initContainers, key, running)
    if spec.overhead:
        running += _amount(spec.overhead.get(key), key, "overhead")
    return ceil(running)


def _with_init_containers(containers: Sequence[Container], key: str, running: _Number) -> _Number:
    sidecars: _Number = 0
    peak: _Number = 0
    for index, container in enumerate(containers):
        amount = _amount(container.resources.requests.get(key), key, "initContainers", index)
        peak = max(peak, sidecars + amount)
        if container.restartPolicy == "Always":
            sidecars += amount
    return max(running + sidecars, peak)


def _amount(value: object, key: str, field: str, index: int | None = None) -> _Number:
    try:
        amount = quantities.exact_quantity(value)
    except QuantityError as error:
        raise PodRequestError(f"{_path(field, index)}: {key}: {error}") from error
    if not 0 <= amount <= INT64_MAX:
        raise PodRequestError(f"{_path(field, index)}: {key}: {quantities.shown(value)} is outside 0 to {INT64_MAX}")
    return amount


def _path(field: str, index: int | None) -> str:
    return f"spec.{field}" if index is None else f"spec.{field}[{index}].resources.requests"
