# SPDX-License-Identifier: Apache-2.0
"""Put objects into the embedded server without HTTP, for tests that are about something else.

Calls made here are not counted; watches see them like any other change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lab.embedded.kubernetes import patching
from lab.embedded.kubernetes.resource_types import ResourceType, ResourceTypes, Target
from lab.embedded.kubernetes.store import Store
from lab.embedded.kubernetes.validation import admit
from lab.embedded.kubernetes.writing import Writer

_DEFAULT_NAMESPACE: Final = "default"


class Objects:
    """Read and write objects of an embedded server in this process.

    Kinds are named by their plural; keys are `name`, or `namespace/name`.
    """

    def __init__(self, store: Store, types: ResourceTypes) -> None:
        self._store = store
        self._types = types
        self._writer = Writer(store, types)

    def get(self, plural: str, key: str) -> dict[str, Any]:
        """Give an object; raises Refusal 404."""
        return self._store.get(self._types.by_plural(plural), key).decode()

    def all(self, plural: str) -> dict[str, dict[str, Any]]:
        """Give all objects of a kind by key."""
        collection = self._store.collection(self._types.by_plural(plural))
        return {stored.key: stored.decode() for stored in collection.sorted()}

    def create(self, plural: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, its status included."""
        type_ = self._types.by_plural(plural)
        target = Target(type_, self._namespace(type_, document), "", "")
        body = msgspec.json.encode(document)
        stored = self._writer.create(target, body)
        if document.get("status") and type_.status:
            return self.merge(plural, stored.key, {"status": document["status"]})
        return stored.decode()

    def merge(self, plural: str, key: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a patch into an object, its status included."""
        type_ = self._types.by_plural(plural)
        previous = self._store.get(type_, key)
        document = patching.merge_patch(previous.decode(), patch)
        return self._store.replace(type_, previous, admit(type_, document)).decode()

    def delete(self, plural: str, key: str) -> None:
        """Delete an object at once."""
        type_ = self._types.by_plural(plural)
        self._store.delete(type_, self._store.get(type_, key))

    def put_raw(self, plural: str, key: str, document: Mapping[str, Any]) -> None:
        """Store an object without any check, for what a real server would never let in; `metadata.name` is needed."""
        type_ = self._types.by_plural(plural)
        copied = json.loads(json.dumps(document))
        if key in self._store.collection(type_).objects:
            self._store.replace(type_, self._store.get(type_, key), copied)
        else:
            self._store.create(type_, key, copied)

    def create_node(
        self,
        name: str,
        *,
        allocatable: Mapping[str, Any] | None = None,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        addresses: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Create a Node; capacity is the same as allocatable."""
        quantities = dict(allocatable or {})
        return self.create(
            "nodes",
            {
                "metadata": {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})},
                "spec": {},
                "status": {
                    "allocatable": quantities,
                    "capacity": quantities,
                    "addresses": [{"type": type_, "address": text} for type_, text in (addresses or {}).items()],
                },
            },
        )

    def create_pod(
        self,
        name: str,
        *,
        namespace: str = _DEFAULT_NAMESPACE,
        node_name: str = "",
        requests: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        phase: str = "Running",
    ) -> dict[str, Any]:
        """Create a pod with one container."""
        spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": dict(requests or {})}}]}
        if node_name:
            spec["nodeName"] = node_name
        return self.create(
            "pods",
            {
                "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
                "spec": spec,
                "status": {"phase": phase},
            },
        )

    def set_node_metric(self, name: str, update_time: str | None) -> None:
        """Create or update the NodeMetric of a node; `update_time` is RFC 3339."""
        status = {"updateTime": update_time} if update_time is not None else {}
        if name in self._store.collection(self._types.by_plural("nodemetrics")).objects:
            self.merge("nodemetrics", name, {"status": status})
        else:
            self.create("nodemetrics", {"metadata": {"name": name}, "spec": {}, "status": status})

    def _namespace(self, type_: ResourceType, document: Mapping[str, Any]) -> str:
        return str(document["metadata"].get("namespace", _DEFAULT_NAMESPACE)) if type_.namespaced else ""
