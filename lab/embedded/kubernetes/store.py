# SPDX-License-Identifier: Apache-2.0
"""Hold objects and their history in memory under one resourceVersion counter, as etcd and the watch cache do.

Objects are kept as encoded bytes beside what selectors need, so that lists and watches of 50,000 pods only join bytes.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from lab.embedded.kubernetes import statuses
from lab.embedded.kubernetes.resource_types import ResourceType

HISTORY_LIMIT: Final = 100_000
"""Changes kept per collection; a watch from an older version is answered 410."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Hold one version of an object."""

    key: str
    name: str
    version: int
    body: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def decode(self) -> dict[str, Any]:
        """Give the object as a new dict."""
        document: dict[str, Any] = msgspec.json.decode(self.body)
        return document


@dataclass(frozen=True, slots=True)
class Change:
    """Hold one entry of the history; `stored` of a deletion is the last state under the deletion's version."""

    type: str
    stored: Stored
    previous: Stored | None


@dataclass(slots=True)
class Collection:
    """Hold the objects of one kind, the changes to them, and who waits for more.

    Attributes:
        compacted: changes up to this version are forgotten.
        offset: number of changes dropped from the front of `history`.
    """

    type: ResourceType
    objects: dict[str, Stored] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    offset: int = 0
    compacted: int = 0
    watchers: set[asyncio.Event] = field(default_factory=set)
    _sorted: list[Stored] | None = None

    def sorted(self) -> list[Stored]:
        """Give all objects ordered by key, as etcd does."""
        if self._sorted is None:
            self._sorted = [self.objects[key] for key in sorted(self.objects)]
        return self._sorted

    def append(self, change: Change) -> None:
        """Take a change and wake the watchers."""
        if change.type == "DELETED":
            del self.objects[change.stored.key]
        else:
            self.objects[change.stored.key] = change.stored
        self._sorted = None
        self.history.append(change)
        if len(self.history) > HISTORY_LIMIT:
            self.forget(HISTORY_LIMIT // 10)
        for watcher in self.watchers:
            watcher.set()

    def forget(self, count: int) -> None:
        """Drop the oldest changes."""
        if count > 0 and self.history:
            count = min(count, len(self.history))
            self.compacted = max(self.compacted, self.history[count - 1].stored.version)
            del self.history[:count]
            self.offset += count

    def position_after(self, version: int) -> int:
        """Give the position in all changes ever made of the first one after a version."""
        low, high = 0, len(self.history)
        while low < high:
            middle = (low + high) // 2
            if self.history[middle].stored.version <= version:
                low = middle + 1
            else:
                high = middle
        return self.offset + low


class Store:
    """Hold all collections."""

    def __init__(self) -> None:
        self.version = 1
        self._collections: dict[ResourceType, Collection] = {}

    def collection(self, type_: ResourceType) -> Collection:
        """Give the collection of a kind, empty at first."""
        found = self._collections.get(type_)
        if found is None:
            found = self._collections[type_] = Collection(type_)
        return found

    def compact(self) -> None:
        """Forget all history."""
        for collection in self._collections.values():
            collection.forget(len(collection.history))
            collection.compacted = max(collection.compacted, self.version)

    def get(self, type_: ResourceType, key: str) -> Stored:
        """Give an object; raises Refusal 404."""
        stored = self.collection(type_).objects.get(key)
        if stored is None:
            raise statuses.not_found(type_, key.rpartition("/")[2])
        return stored

    def create(self, type_: ResourceType, key: str, document: dict[str, Any]) -> Stored:
        """Store a new object; raises Refusal 409 where it exists."""
        collection = self.collection(type_)
        metadata = document["metadata"]
        if key in collection.objects:
            raise statuses.already_exists(type_, metadata["name"])
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = now_text()
        stored = self._stored(type_, key, document)
        collection.append(Change("ADDED", stored, None))
        return stored

    def replace(self, type_: ResourceType, previous: Stored, document: dict[str, Any]) -> Stored:
        """Store the next version of an object; an equal one changes nothing."""
        document["metadata"]["resourceVersion"] = str(previous.version)
        if msgspec.json.encode(document) == previous.body:
            return previous
        stored = self._stored(type_, previous.key, document)
        self.collection(type_).append(Change("MODIFIED", stored, previous))
        return stored

    def delete(self, type_: ResourceType, previous: Stored) -> Stored:
        """Remove an object."""
        stored = self._stored(type_, previous.key, previous.decode())
        self.collection(type_).append(Change("DELETED", stored, previous))
        return stored

    def _stored(self, type_: ResourceType, key: str, document: dict[str, Any]) -> Stored:
        self.version += 1
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(self.version)
        return Stored(
            key=key,
            name=metadata["name"],
            version=self.version,
            body=msgspec.json.encode(document),
            labels=metadata.get("labels") or {},
            fields=_fields(type_, document),
        )


def _fields(type_: ResourceType, document: dict[str, Any]) -> dict[str, str]:
    metadata = document["metadata"]
    fields = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
    if type_.plural == "pods":
        fields["spec.nodeName"] = (document.get("spec") or {}).get("nodeName") or ""
        fields["status.phase"] = (document.get("status") or {}).get("phase") or ""
    elif type_.plural == "nodes":
        fields["spec.unschedulable"] = str((document.get("spec") or {}).get("unschedulable", False)).lower()
    elif type_.plural == "events":
        about = document.get("involvedObject") or {}
        fields["involvedObject.name"] = about.get("name", "")
        fields["involvedObject.kind"] = about.get("kind", "")
        fields["reason"] = document.get("reason", "")
    return fields


def now_text() -> str:
    """Give the time as `metav1.Time` writes it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
