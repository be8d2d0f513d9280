# SPDX-License-Identifier: Apache-2.0
"""Build the JSON patch (RFC 6902) that changes annotations under a precondition; no I/O here.

The API server's `test` against null passes where the key is absent, but only inside a map that exists; on an object
without annotations the map itself is tested against null and created in the same patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

ANNOTATIONS: Final = "/metadata/annotations"
CONTENT_TYPE: Final = "application/json-patch+json"

_encoder: Final = msgspec.json.Encoder()


def annotations_patch(
    *, expected: Mapping[str, str | None], changed: Mapping[str, str | None], create_map: bool = False
) -> bytes:
    """Encode the patch: all tests first, then the changes.

    Args:
        expected: text that each annotation must have now; None where it must be absent.
        changed: text to write; None removes the annotation, present or not.
        create_map: write for an object that has no annotations at all; `expected` must then hold no text.
    """
    operations = list(_tests(expected, create_map))
    for key, text in changed.items():
        path = f"{ANNOTATIONS}/{escape(key)}"
        if text is not None:
            operations.append({"op": "add", "path": path, "value": text})
        elif not create_map and (key not in expected or expected[key] is not None):
            if key not in expected:
                # `remove` fails on an absent key; writing it first makes the removal hold in both cases.
                operations.append({"op": "add", "path": path, "value": ""})
            operations.append({"op": "remove", "path": path})
    return _encoder.encode(operations)


def _tests(expected: Mapping[str, str | None], create_map: bool) -> Iterator[dict[str, Any]]:
    if create_map:
        yield {"op": "test", "path": ANNOTATIONS, "value": None}
        yield {"op": "add", "path": ANNOTATIONS, "value": {}}
        return
    for key, text in expected.items():
        yield {"op": "test", "path": f"{ANNOTATIONS}/{escape(key)}", "value": text}


def escape(key: str) -> str:
    """Escape a key as one reference token of a JSON pointer (RFC 6901): `~` is ~0, `/` is ~1."""
    return key.replace("~", "~0").replace("/", "~1")
