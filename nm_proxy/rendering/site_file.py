# SPDX-License-Identifier: Apache-2.0
"""Write a yarn-site.xml: the operator's properties, with ours in place of those that we lay over; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.xmlfile import Property

_OURS: Final = Path("nm-proxy")
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0 cannot hold (production Char); halves of a pair come from bytes of a variable that are no UTF-8."""
_ESCAPES: Final = {"\r": "&#13;"}
"""A bare carriage return would be read as a line feed."""
_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Rendered by nm-proxy before each start of the NodeManager; changes here are lost. -->
<configuration>
"""


def joined_properties(written: Iterable[Property], overlay: Mapping[str, str]) -> list[Property]:
    """Lay ours over the operator's, whatever is final there; files that were included are flattened."""
    kept = [item for item in written if item.name not in overlay]
    ours = [Property(name, value, True, _OURS) for name, value in overlay.items()]
    return [*kept, *ours]


def site_text(written: Iterable[Property], overlay: Mapping[str, str]) -> str:
    """Write the whole file.

    Raises:
        ConfigError: a value has a character that XML cannot hold.
    """
    mine = set(overlay)
    lines = [_HEAD]
    began = False
    for item in joined_properties(written, overlay):
        if item.name in mine and not began:
            began = True
            lines.append("  <!-- From here on: nm-proxy's own. -->\n")
        lines.append(_property(item))
    return "".join([*lines, "</configuration>\n"])


def overlay_text(overlay: Mapping[str, str]) -> str:
    """Write only what is laid over."""
    return site_text((), overlay)


def _property(item: Property) -> str:
    for text in (item.name, item.value or ""):
        if _FORBIDDEN.search(text):
            raise ConfigError(f"{item.path}: {item.name[:128]!r} has a character that XML cannot hold")
    value = "" if item.value is None else f"<value>{escape(item.value, _ESCAPES)}</value>"
    final = "<final>true</final>" if item.is_final else ""
    return f"  <property><name>{escape(item.name, _ESCAPES)}</name>{value}{final}</property>\n"
