# SPDX-License-Identifier: Apache-2.0
"""Read the operator's Hadoop configuration and write the NodeManager's directory; never changes the operator's files.

Rendered is yarn-site.xml. Everything else is a symbolic link to the operator's file, so that a changed
log4j.properties needs nothing from us. Files are replaced by renaming, so that a NodeManager that reads meanwhile sees
a whole one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_proxy.cgroup.detection import Detection
from nm_proxy.rendering import keys
from nm_proxy.rendering.overlay import Overlay, build_overlay
from nm_proxy.rendering.site_file import joined_properties, site_text
from nm_proxy.settings import NodeSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import xmlfile
from yarn_copilot.hadoop.configuration import (
    CORE_FILE,
    SITE_FILE,
    Surroundings,
    can_be_seen,
    core_site_of,
    read_values,
    site_file_of,
)
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration

MARK: Final = ".rendered-by-nm-proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Hold what would be written.

    Attributes:
        overlay: what is laid over, and what it means.
        files: name to text.
        links: name to the operator's file.
    """

    overlay: Overlay
    files: Mapping[str, str]
    links: Mapping[str, Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Hold what the rendering needs to know of the machine.

    Attributes:
        environ: for `${env.NAME}`.
        user: for `${user.name}`.
        host_name: this machine's full host name.
        detection: the cgroup tree; None where it was not found.
    """

    environ: Mapping[str, str]
    user: str
    host_name: str
    detection: Detection | None


def render(settings: NodeSettings, around: Around) -> Rendered:
    """Read the operator's files and decide what to write; writes nothing.

    Raises:
        ConfigError: a file cannot be read or is wrong, or core-site.xml makes a key final that has to be laid over.
    """
    conf_dir = settings.hadoop.conf_dir
    site_file = site_file_of(conf_dir, settings.hadoop.cluster)
    surroundings = Surroundings(environ=around.environ, system_properties={"user.name": around.user})
    if not can_be_seen(site_file):
        raise ConfigError(f"{site_file}: does not exist; mount the Hadoop configuration there or set hadoop.conf_dir")
    values = read_values(site_file, surroundings, keys.DEFAULTS)
    overlay = build_overlay(values, settings, host_name=around.host_name, detection=around.detection)
    written = xmlfile.read_properties(site_file)
    _check_finals(site_file, written, overlay, surroundings)
    files = {SITE_FILE: site_text(written, overlay.properties)}
    links = _links(conf_dir)
    links.pop(SITE_FILE, None)
    core_site = core_site_of(site_file)
    if core_site is not None and core_site.name != CORE_FILE:
        links[CORE_FILE] = core_site
    return Rendered(overlay=overlay, files=files, links=links)


def write(rendered: Rendered, directory: Path) -> None:
    """Write the directory.

    Raises:
        ConfigError: it cannot be written, or holds files that were not rendered by this program.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
        present = {path.name for path in directory.iterdir()}
        if present and MARK not in present:
            raise ConfigError(f"{directory}: has files that nm-proxy did not write; set hadoop.rendered_dir elsewhere")
        _replace(directory / MARK, "")
        for name, text in rendered.files.items():
            _replace(directory / name, text)
        for name, target in rendered.links.items():
            _link(directory / name, target)
        for name in present - set(rendered.files) - set(rendered.links) - {MARK}:
            (directory / name).unlink()
    except OSError as error:
        raise ConfigError(
            f"{error.filename or directory}: cannot be written: {error.strerror or error}; give nm-proxy a directory "
            "that it may write and that has room (hadoop.rendered_dir)"
        ) from error


def _check_finals(
    site_file: Path, written: list[xmlfile.Property], overlay: Overlay, surroundings: Surroundings
) -> None:
    core_site = core_site_of(site_file)
    joined = HadoopConfiguration(
        core_site=xmlfile.read_properties(core_site) if core_site is not None else (),
        yarn_site=joined_properties(written, overlay.properties),
        main_file=site_file,
        environ=surroundings.environ,
        system_properties=surroundings.system_properties,
    )
    for key, value in overlay.properties.items():
        if joined.raw(key) != value:
            raise ConfigError(f"{core_site}: {key} is final there, but nm-proxy has to set it; move it to {site_file}")


def _links(conf_dir: Path) -> dict[str, Path]:
    # Names that begin with a dot are the inner side of a mounted ConfigMap.
    try:
        return {path.name: path for path in sorted(conf_dir.iterdir()) if not path.name.startswith(".")}
    except OSError as error:
        raise ConfigError(f"{conf_dir}: cannot be read: {error.strerror or error}") from error


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(0o644)
    temporary.replace(path)


def _link(path: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        if path.readlink() == target:
            return
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target.absolute())
    temporary.replace(path)
