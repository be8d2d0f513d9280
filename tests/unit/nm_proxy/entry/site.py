# SPDX-License-Identifier: Apache-2.0
"""Write Hadoop files and settings for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from nm_proxy.cgroup.detection import Detection
from nm_proxy.rendering.directory import Around, Rendered, render
from nm_proxy.settings import NodeSettings

HOST = "nm-3.nodes.example.internal"


def write_site(path: Path, properties: Mapping[str, str], *, final: tuple[str, ...] = ()) -> None:
    """Write one site file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value>"
        f"{'<final>true</final>' if name in final else ''}</property>"
        for name, value in properties.items()
    ]
    path.write_text(f"<configuration>{''.join(lines)}</configuration>")


def settings(folder: Path, **sections: Mapping[str, Any]) -> NodeSettings:
    """Make settings whose directories are in a folder."""
    document: dict[str, Any] = {"hadoop": {"conf_dir": str(folder / "conf"), "rendered_dir": str(folder / "rendered")}}
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section}
    return NodeSettings.model_validate(document)


def rendered(folder: Path, *, detection: Detection | None = None, **sections: Mapping[str, Any]) -> Rendered:
    """Render what was written to `conf`."""
    around = Around(environ={"POD_NAME": "nm-3"}, user="yarn", host_name=HOST, detection=detection)
    return render(settings(folder, **sections), around)
