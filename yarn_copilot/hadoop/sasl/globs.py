# SPDX-License-Identifier: Apache-2.0
"""Match names against patterns as Hadoop does: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, and `\\` before a plain character.

Source: org.apache.hadoop.fs.GlobPattern of Hadoop 3.5.0.
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"\\.|\[[!^]?(?:\\.|[^\]\\])+\]|.", re.DOTALL)
_PLAIN: Final = {"*": ".*", "?": ".", "{": "(?:", "}": ")"}


def matches(pattern: str, name: str) -> bool:
    """Tell whether a whole name fits.

    Raises:
        ValueError: a brace or bracket has no partner or holds nothing, or the pattern ends with a backslash.
    """
    try:
        return re.fullmatch(_regular_expression(pattern), name, re.DOTALL) is not None
    except re.error as error:
        raise ValueError(str(error)) from error


def _regular_expression(pattern: str) -> str:
    depth = 0
    parts: list[str] = []
    for piece in _PIECE.findall(pattern):
        depth += (piece == "{") - (piece == "}")
        if depth < 0 or piece in ("[", "\\"):
            raise ValueError(f"{piece} at no good place")
        parts.append(_translated(piece, is_alternative=depth > 0))
    if depth:
        raise ValueError("{ without }")
    return "".join(parts)


def _translated(piece: str, *, is_alternative: bool) -> str:
    if piece in _PLAIN:
        return _PLAIN[piece]
    if piece == "," and is_alternative:
        return "|"
    if len(piece) == 1:
        return re.escape(piece)
    if piece.startswith("\\"):
        return re.escape(piece[1])
    negation = "^" if piece[1] in "!^" else ""
    inner = piece[2:-1] if negation else piece[1:-1]
    return f"[{negation}{_set(inner)}]"


def _set(inner: str) -> str:
    """Keep ranges and escapes of a bracket; everything else in it is plain."""
    return re.sub(r"\\(.)|([\[^&|~])", lambda found: re.escape(found[1] or found[2]), inner)
