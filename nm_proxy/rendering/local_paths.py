# SPDX-License-Identifier: Apache-2.0
"""Read a local directory as Hadoop does: a plain path, or a URI with the scheme `file`; pure.

Source: LocalDirsHandlerService.validatePaths and org.apache.hadoop.fs.Path of 3.3.6 and 3.5.0, whose answers a test
repeats. A Path is no encoded URI: `%20`, `?` and `#` are parts of a name. What stands between `//` and the next slash
is a host, and has no meaning.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

_SLASHES: Final = re.compile("/+")


def parse_local_path(text: str) -> str:
    """Give the path that the NodeManager uses.

    Args:
        text: one directory of the configuration: /x, file:/x, file:///x or file://HOST/x.

    Raises:
        ValueError: it has another scheme, or no path; a NodeManager does not start with it.
    """
    scheme, rest = _split_scheme(text)
    if scheme not in (None, "file"):
        raise ValueError(f"{text[:256]!r} is not local: a NodeManager takes a path, or a URI with the scheme file")
    if rest.startswith("//") and len(rest) > 2:
        _, slash, path = rest[2:].partition("/")
        rest = slash + path
    path = posixpath.normpath(_SLASHES.sub("/", rest)) if rest else ""
    if path in ("", ".") or (scheme is not None and not path.startswith("/")):
        raise ValueError(f"{text[:256]!r} has no path, as /x or file:///x have")
    return path


def _split_scheme(text: str) -> tuple[str | None, str]:
    """Cut what stands before a colon that no slash precedes."""
    before, colon, after = text.partition(":")
    return (before, after) if colon and "/" not in before else (None, text)
