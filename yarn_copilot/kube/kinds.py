# SPDX-License-Identifier: Apache-2.0
"""List the kinds of objects that the bridge reads, with their paths and decoders.

A decoder skips every field that `model` does not name. Each answer is decoded the fast way first (the whole page or
event in one pass); only where that fails are its objects cut out as raw bytes, so that one bad object costs itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from yarn_copilot.kube import model

T = TypeVar("T")


class ListMeta(msgspec.Struct, frozen=True):
    """Hold `metav1.ListMeta`."""

    resourceVersion: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class RawList(msgspec.Struct, frozen=True):
    """Hold a list whose objects are not decoded yet."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class RawEvent(msgspec.Struct, frozen=True):
    """Hold a watch event whose object is not decoded yet."""

    type: str
    object: msgspec.Raw


class _NameMeta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _NameMeta = _NameMeta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """Hold what is known of an object that could not be decoded.

    Attributes:
        key: its key as far as readable, else "".
        reason: what is wrong, with the JSON path.
        version: its resourceVersion as far as readable, else "".
    """

    key: str
    reason: str
    version: str = ""


_named_decoder: Final = msgspec.json.Decoder(_Named)
_raw_list_decoder: Final = msgspec.json.Decoder(RawList)
_raw_event_decoder: Final = msgspec.json.Decoder(RawEvent)
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ResourceKind(Generic[T]):
    """Describe one kind: where it is served and how its objects become `T`.

    Args:
        path: collection path for all namespaces, for example `/api/v1/pods`.
        type_: msgspec struct with `metadata`.
        namespaced: whether keys are `namespace/name`.
    """

    def __init__(self, path: str, type_: type[T], *, namespaced: bool) -> None:
        self.path = path
        self.plural = path.rsplit("/", 1)[1]
        self.namespaced = namespaced
        self._object_decoder = msgspec.json.Decoder(type_)
        page = msgspec.defstruct("Page", [("metadata", ListMeta), ("items", list[type_] | None, None)], frozen=True)  # type: ignore[valid-type]
        event = msgspec.defstruct("Event", [("type", str), ("object", type_)], frozen=True)
        self._page_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(page)
        self._event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event)

    def __repr__(self) -> str:
        return f"ResourceKind({self.path})"

    def object_path(self, name: str, namespace: str = "") -> str:
        """Give the path of one object; name and namespace are escaped."""
        if not self.namespaced:
            return f"{self.path}/{quote(name, safe='')}"
        parent, plural = self.path.rsplit("/", 1)
        return f"{parent}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"

    def key_of(self, item: T) -> str:
        """Give `name`, or `namespace/name`."""
        metadata = item.metadata  # type: ignore[attr-defined]
        return f"{metadata.namespace}/{metadata.name}" if self.namespaced else str(metadata.name)

    def decode(self, body: bytes | msgspec.Raw) -> T:
        """Decode one object; raises one of DECODE_ERRORS."""
        return self._object_decoder.decode(body)

    def decode_page(self, body: bytes) -> tuple[ListMeta, Iterator[T | Malformed]]:
        """Decode one page of a list; raises one of DECODE_ERRORS where the page itself is no list."""
        try:
            page = self._page_decoder.decode(body)
        except DECODE_ERRORS:
            raw = _raw_list_decoder.decode(body)
            return raw.metadata, map(self._decode_or_malformed, raw.items or ())
        return page.metadata, iter(page.items or ())

    def decode_event(self, line: bytes) -> tuple[str, T | Malformed | msgspec.Raw]:
        """Decode one line of a watch.

        Returns:
            The event's type with the object, a `Malformed`, or (ERROR and BOOKMARK) the object's raw bytes.

        Raises:
            one of DECODE_ERRORS: the line is no watch event at all.
        """
        try:
            event = self._event_decoder.decode(line)
        except DECODE_ERRORS:
            raw = _raw_event_decoder.decode(line)
            if raw.type in ("ERROR", "BOOKMARK"):
                return raw.type, raw.object
            return raw.type, self._decode_or_malformed(raw.object)
        return event.type, event.object

    def _decode_or_malformed(self, raw: msgspec.Raw) -> T | Malformed:
        try:
            return self._object_decoder.decode(raw)
        except DECODE_ERRORS as error:
            return self.malformed(raw, str(error))

    def malformed(self, raw: bytes | msgspec.Raw, reason: str) -> Malformed:
        """Name an object that cannot be decoded as well as its bytes allow."""
        try:
            metadata = _named_decoder.decode(raw).metadata
        except DECODE_ERRORS:
            return Malformed(key="", reason=reason)
        key = f"{metadata.namespace}/{metadata.name}" if self.namespaced else metadata.name
        return Malformed(key=key, reason=reason, version=metadata.resourceVersion)


def version_of(raw: bytes | msgspec.Raw) -> str:
    """Read `metadata.resourceVersion` of a BOOKMARK's object, "" where there is none."""
    try:
        return _named_decoder.decode(raw).metadata.resourceVersion
    except DECODE_ERRORS:
        return ""


NODES: Final = ResourceKind("/api/v1/nodes", model.Node, namespaced=False)
PODS: Final = ResourceKind("/api/v1/pods", model.Pod, namespaced=True)
NODE_METRICS: Final = ResourceKind("/apis/slo.koordinator.sh/v1alpha1/nodemetrics", model.NodeMetric, namespaced=False)
LEASES: Final = ResourceKind("/apis/coordination.k8s.io/v1/leases", model.Lease, namespaced=True)
