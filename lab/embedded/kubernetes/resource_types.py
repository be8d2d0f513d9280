# SPDX-License-Identifier: Apache-2.0
"""List the collections that are served, and find the one that a URL path means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class ResourceType:
    """Describe one collection.

    Attributes:
        group: API group, "" for core.
        version: API version.
        plural: name in paths.
        kind: name in objects.
        namespaced: whether objects live in namespaces.
        status: whether `status` is a subresource, so that writes to the object itself leave it alone.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    status: bool = False

    @property
    def api_version(self) -> str:
        """Give `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Give the name that error messages use: `nodes`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def prefix(self) -> str:
        """Give the path of its API version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


NODES: Final = ResourceType("", "v1", "nodes", "Node", False, True)
PODS: Final = ResourceType("", "v1", "pods", "Pod", True, True)
NAMESPACES: Final = ResourceType("", "v1", "namespaces", "Namespace", False, True)
EVENTS: Final = ResourceType("", "v1", "events", "Event", True)
SERVICE_ACCOUNTS: Final = ResourceType("", "v1", "serviceaccounts", "ServiceAccount", True)
LEASES: Final = ResourceType("coordination.k8s.io", "v1", "leases", "Lease", True)
PRIORITY_CLASSES: Final = ResourceType("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
DEFINITIONS: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, True
)
NODE_METRICS: Final = ResourceType("slo.koordinator.sh", "v1alpha1", "nodemetrics", "NodeMetric", False, True)

BUILT_IN: Final = (
    NODES,
    PODS,
    NAMESPACES,
    EVENTS,
    SERVICE_ACCOUNTS,
    LEASES,
    PRIORITY_CLASSES,
    DEFINITIONS,
)


@dataclass(frozen=True, slots=True)
class Target:
    """Say what a path means: a collection, an object in it, or a subresource."""

    type: ResourceType
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        """Give the object's key in its collection."""
        return f"{self.namespace}/{self.name}" if self.type.namespaced else self.name

    @property
    def resource(self) -> str:
        """Give the name that calls are counted under: `pods`, `pods/binding`."""
        return f"{self.type.plural}/{self.subresource}" if self.subresource else self.type.plural


class ResourceTypes:
    """Hold what is served now; custom kinds come and go."""

    def __init__(self) -> None:
        self._by_path = {(type_.group, type_.version, type_.plural): type_ for type_ in BUILT_IN}

    def add(self, type_: ResourceType) -> None:
        """Serve a kind."""
        self._by_path[type_.group, type_.version, type_.plural] = type_

    def remove(self, type_: ResourceType) -> None:
        """Stop serving a kind."""
        self._by_path.pop((type_.group, type_.version, type_.plural), None)

    def by_plural(self, plural: str) -> ResourceType:
        """Find a kind by its plural; raises KeyError where none is served."""
        for type_ in self._by_path.values():
            if type_.plural == plural:
                return type_
        raise KeyError(plural)

    def target_or_none(self, raw_path: str) -> Target | None:
        """Understand a path that is still percent-encoded; None where nothing is served there."""
        parts = [unquote(part) for part in raw_path.strip("/").split("/")]
        if len(parts) >= 3 and parts[0] == "api":
            group, version, rest = "", parts[1], parts[2:]
        elif len(parts) >= 4 and parts[0] == "apis":
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) >= 3:
            namespace, rest = rest[1], rest[2:]
        type_ = self._by_path.get((group, version, rest[0]))
        if type_ is None or len(rest) > 3 or (namespace and not type_.namespaced):
            return None
        name, subresource = [*rest[1:], "", ""][:2]
        return Target(type_, namespace, name, subresource)
