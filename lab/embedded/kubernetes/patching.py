# SPDX-License-Identifier: Apache-2.0
"""Apply JSON patch (RFC 6902) and JSON merge patch (RFC 7386) to decoded objects.

JSON patch follows the library of kube-apiserver where RFC 6902 leaves room: `test` against null passes for a key that
is absent, if its parent exists.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from lab.embedded.kubernetes.statuses import bad_request, rejected_patch

_MISSING: Final = object()


def merge_patch(target: Any, patch: Any) -> Any:
    """Give the target with the patch merged into it; the target is not changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """Apply all operations to the document in place and give it; a refused patch leaves it useless.

    Raises:
        Refusal: 400 for what is no patch; 422 for an operation that fails.
    """
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("error decoding patch: json: cannot unmarshal into Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        try:
            _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise rejected_patch() from error
    return document


def _apply(document: Any, operation: dict[str, Any]) -> None:
    path = _tokens(operation["path"])
    match operation.get("op"):
        case "add":
            _add(document, path, copy.deepcopy(operation.get("value")))
        case "remove":
            _remove(document, path)
        case "replace":
            # In a map also where the key is absent: so does kube-apiserver, against the RFC.
            _get(document, path, default=None)
            _set(document, path, copy.deepcopy(operation.get("value")))
        case "test":
            if _get(document, path, default=None) != operation.get("value"):
                raise ValueError(operation["path"])
        case "copy":
            _add(document, path, copy.deepcopy(_get(document, _tokens(operation["from"]))))
        case "move":
            source = _tokens(operation["from"])
            value = _get(document, source)
            _remove(document, source)
            _add(document, path, value)
        case _:
            raise ValueError(operation.get("op"))


def _tokens(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise ValueError(pointer)
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _parent(document: Any, path: list[str]) -> Any:
    for token in path[:-1]:
        document = document[int(token)] if isinstance(document, list) else document[token]
    if not isinstance(document, (dict, list)):
        raise TypeError(path)
    return document


def _get(document: Any, path: list[str], *, default: Any = _MISSING) -> Any:
    parent = _parent(document, path)
    if isinstance(parent, list):
        return parent[int(path[-1])]
    return parent[path[-1]] if default is _MISSING else parent.get(path[-1], default)


def _set(document: Any, path: list[str], value: Any) -> None:
    parent = _parent(document, path)
    parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = value


def _add(document: Any, path: list[str], value: Any) -> None:
    parent = _parent(document, path)
    if isinstance(parent, list):
        position = len(parent) if path[-1] == "-" else int(path[-1])
        if position > len(parent):
            raise IndexError(position)
        parent.insert(position, value)
    else:
        parent[path[-1]] = value


def _remove(document: Any, path: list[str]) -> None:
    parent = _parent(document, path)
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
