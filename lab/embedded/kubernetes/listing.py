# SPDX-License-Identifier: Apache-2.0
"""Answer lists, with pages that all show the state at the first page."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import msgspec

from lab.embedded.kubernetes.selectors import selector_or_none
from lab.embedded.kubernetes.statuses import CONTINUE_TOO_OLD, Refusal, bad_request
from lab.embedded.kubernetes.store import Collection, Store, Stored

_KEPT_SNAPSHOTS: Final = 256


class _Token(msgspec.Struct, frozen=True):
    snapshot: int
    start: int


class Lister:
    """Answer lists of a store and keep the snapshots that continue tokens refer to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[int, tuple[int, list[Stored]]] = OrderedDict()
        self._next_snapshot = 1

    def expire_tokens(self) -> None:
        """Make all continue tokens given so far too old."""
        self._snapshots.clear()

    def page(self, collection: Collection, namespace: str, query: Mapping[str, str]) -> bytes:
        """Encode one page.

        Raises:
            Refusal: 410 for a token that is too old, 400 for a query that makes no sense.
        """
        limit = _number(query, "limit")
        token = query.get("continue", "")
        if token:
            version, objects, snapshot, start = self._continued(token)
        else:
            version, objects = self._store.version, self._selected(collection, namespace, query)
            snapshot, start = 0, 0
        end = len(objects) if limit <= 0 else min(len(objects), start + limit)
        metadata: dict[str, str | int] = {"resourceVersion": str(version)}
        if end < len(objects):
            snapshot = snapshot or self._keep(version, objects)
            metadata["continue"] = _encode(_Token(snapshot, end))
            metadata["remainingItemCount"] = len(objects) - end
        type_ = collection.type
        head = {"kind": f"{type_.kind}List", "apiVersion": type_.api_version, "metadata": metadata}
        items = b",".join(stored.body for stored in objects[start:end])
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def _selected(self, collection: Collection, namespace: str, query: Mapping[str, str]) -> list[Stored]:
        selects = selector_or_none(
            collection.type.plural, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        objects = collection.sorted()
        if namespace:
            objects = [stored for stored in objects if stored.key.startswith(f"{namespace}/")]
        if selects is None:
            return objects
        return [stored for stored in objects if selects(stored.labels, stored.fields)]

    def _keep(self, version: int, objects: list[Stored]) -> int:
        number = self._next_snapshot
        self._next_snapshot += 1
        self._snapshots[number] = (version, objects)
        while len(self._snapshots) > _KEPT_SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return number

    def _continued(self, text: str) -> tuple[int, list[Stored], int, int]:
        try:
            token = msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
        except (binascii.Error, ValueError) as error:
            raise bad_request(f"invalid continue token: {error}") from error
        if token.snapshot not in self._snapshots:
            raise Refusal(410, "Expired", CONTINUE_TOO_OLD)
        version, objects = self._snapshots[token.snapshot]
        return version, objects, token.snapshot, token.start


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _number(query: Mapping[str, str], name: str) -> int:
    try:
        return int(query.get(name) or 0)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{query.get(name)}": invalid syntax') from error
