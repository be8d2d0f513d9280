# SPDX-License-Identifier: Apache-2.0
"""Do the writes: create, replace, patch, bind, delete, with subresources and optimistic concurrency."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from lab.embedded.kubernetes import patching, statuses
from lab.embedded.kubernetes.resource_types import DEFINITIONS, NAMESPACES, ResourceType, ResourceTypes, Target
from lab.embedded.kubernetes.statuses import Refusal
from lab.embedded.kubernetes.store import Store, Stored
from lab.embedded.kubernetes.validation import admit

JSON_PATCH = "application/json-patch+json"
MERGE_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
"""A strategic merge is done as a plain merge: lists are replaced."""


class Writer:
    """Change a store as the API server's registries do."""

    def __init__(self, store: Store, types: ResourceTypes) -> None:
        self._store = store
        self._types = types

    def create(self, target: Target, body: bytes) -> Stored:
        """Create an object from its JSON."""
        type_, document = target.type, decode(target.type, body)
        metadata = document.setdefault("metadata", {}) if isinstance(document, dict) else None
        if isinstance(metadata, dict):
            if "generateName" in metadata and not metadata.get("name"):
                metadata["name"] = f"{metadata['generateName']}{secrets.token_hex(3)[:5]}"
            if type_.namespaced:
                self._place_in_namespace(type_, target.namespace, metadata)
        admit(type_, document)
        if type_.status and type_.plural != "nodes":
            document["status"] = {"phase": "Pending"} if type_.plural == "pods" else {}
        if type_.plural == "pods":
            document["spec"].setdefault("terminationGracePeriodSeconds", 30)
        if type_.plural == "nodes":
            document.setdefault("spec", {})
            document.setdefault("status", {}).setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        metadata = document["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}" if type_.namespaced else metadata["name"]
        stored = self._store.create(type_, key, document)
        if type_ is DEFINITIONS:
            self._types.add(_type_of(document))
        return stored

    def replace(self, target: Target, body: bytes) -> Stored:
        """Replace an object by its JSON; a resourceVersion in it must be the stored one."""
        previous = self._store.get(target.type, target.key)
        document = decode(target.type, body)
        if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
            raise statuses.bad_request(f"the object provided is unrecognized (must be of type {target.type.kind})")
        return self._update(target, previous, document)

    def patch(self, target: Target, content_type: str, body: bytes) -> Stored:
        """Patch an object; nothing is written unless all of it applies and the result is valid."""
        previous = self._store.get(target.type, target.key)
        current = previous.decode()
        if content_type == JSON_PATCH:
            changed = patching.json_patch(current, decode(target.type, body))
        elif content_type in MERGE_PATCHES:
            changed = patching.merge_patch(current, decode(target.type, body))
        else:
            raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        return self._update(target, previous, changed)

    def bind(self, target: Target, body: bytes) -> Stored:
        """Bind a pod to a node (`pods/binding`)."""
        previous = self._store.get(target.type, target.key)
        document = previous.decode()
        spec = document["spec"]
        if spec.get("nodeName"):
            message = (
                f'Operation cannot be fulfilled on pods/binding "{target.name}": '
                f'pod {target.name} is already assigned to node "{spec["nodeName"]}"'
            )
            raise Refusal(409, "Conflict", message, details={"name": target.name, "kind": "pods/binding"})
        spec["nodeName"] = decode(target.type, body)["target"]["name"]
        document["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        return self._store.replace(target.type, previous, document)

    def delete(self, target: Target, query: Mapping[str, str], body: bytes) -> tuple[Stored, bool]:
        """Delete an object and tell whether it is gone; a bound pod with a grace period only gets its deletion time."""
        type_ = target.type
        previous = self._store.get(type_, target.key)
        if type_.plural == "pods":
            options = decode(type_, body) if body else {}
            document = previous.decode()
            grace_seconds = _grace_seconds(document, query, options)
            if grace_seconds > 0:
                ends = datetime.now(UTC) + timedelta(seconds=grace_seconds)
                document["metadata"]["deletionTimestamp"] = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
                document["metadata"]["deletionGracePeriodSeconds"] = grace_seconds
                return self._store.replace(type_, previous, document), False
        stored = self._store.delete(type_, previous)
        if type_ is DEFINITIONS:
            self._remove_kind(_type_of(previous.decode()))
        return stored, True

    def _remove_kind(self, type_: ResourceType) -> None:
        for stored in list(self._store.collection(type_).objects.values()):
            self._store.delete(type_, stored)
        self._types.remove(type_)

    def _place_in_namespace(self, type_: ResourceType, namespace: str, metadata: dict[str, Any]) -> None:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if namespace not in self._store.collection(NAMESPACES).objects:
            raise statuses.not_found(NAMESPACES, namespace)

    def _update(self, target: Target, previous: Stored, document: dict[str, Any]) -> Stored:
        type_, metadata = target.type, document.setdefault("metadata", {})
        version = metadata.get("resourceVersion")
        if version and version != str(previous.version):
            raise statuses.modified(type_, target.name)
        old = previous.decode()
        for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
            if name in old["metadata"]:
                metadata[name] = old["metadata"][name]
        if target.subresource == "status":
            document = {**old, "status": document.get("status") or {}, "metadata": metadata}
        elif type_.status:
            # Writing the object itself leaves its status alone.
            document.pop("status", None)
            if "status" in old:
                document["status"] = old["status"]
        return self._store.replace(type_, previous, admit(type_, document))


def decode(type_: ResourceType, body: bytes) -> Any:
    """Decode a request's body; raises Refusal 400."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {type_.kind}): json parse error: {error}"
        ) from error


def _grace_seconds(document: dict[str, Any], query: Mapping[str, str], options: Any) -> int:
    spec, phase = document.get("spec") or {}, (document.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    asked = query.get("gracePeriodSeconds")
    if asked is None and isinstance(options, dict):
        asked = options.get("gracePeriodSeconds")
    return int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def _type_of(definition: dict[str, Any]) -> ResourceType:
    spec = definition["spec"]
    version = spec["versions"][0]
    return ResourceType(
        spec["group"],
        version["name"],
        spec["names"]["plural"],
        spec["names"]["kind"],
        spec["scope"] == "Namespaced",
        "status" in (version.get("subresources") or {}),
    )
