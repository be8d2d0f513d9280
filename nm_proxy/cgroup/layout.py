# SPDX-License-Identifier: Apache-2.0
"""Say where things are in the tree: kubelet's directories by cgroup driver, and files by cgroup version.

Source: Koordinator pkg/koordlet/util/system/cgroup_driver.go and cgroup_resource.go (v1.8.0), which are the paths
that koordlet reads; kubelet pkg/kubelet/cm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nm_proxy.container_ids import is_container_id

YARN_GROUP: Final = "hadoop-yarn"
"""The directory below best-effort that Koordinator's host application configuration names."""


class Version(StrEnum):
    """Tell the two interfaces of the kernel apart."""

    V1 = "v1"
    V2 = "v2"


class Driver(StrEnum):
    """Tell kubelet's two ways to name directories apart."""

    SYSTEMD = "systemd"
    CGROUPFS = "cgroupfs"

    @property
    def kubepods(self) -> str:
        """Give the directory of all pods, relative to a hierarchy's root."""
        return "kubepods.slice" if self is Driver.SYSTEMD else "kubepods"

    @property
    def best_effort(self) -> str:
        """Give the directory of all best-effort pods."""
        return f"{self.kubepods}/kubepods-besteffort.slice" if self is Driver.SYSTEMD else f"{self.kubepods}/besteffort"

    @property
    def pod_prefix(self) -> str:
        """Give what names of best-effort pods' directories begin with."""
        return "kubepods-besteffort-pod" if self is Driver.SYSTEMD else "pod"


@dataclass(frozen=True, slots=True)
class Place:
    """Say where YARN's containers belong, relative to a hierarchy's root, without leading slash.

    Attributes:
        driver: kubelet's driver; None where an operator gave the path.
        best_effort: kubelet's directory; it must exist and is never changed.
        yarn: our directory directly below it; containers are directly below that, at depth two.
    """

    driver: Driver | None
    best_effort: str
    yarn: str

    def container(self, container_id: str) -> str:
        """Give the group of one container.

        Raises:
            ValueError: the text is not a container id; nothing else may become a path.
        """
        if not is_container_id(container_id):
            raise ValueError(f"not a container id: {container_id[:128]!r}")
        return f"{self.yarn}/{container_id}"


def place_by_driver(driver: Driver, *, name: str = YARN_GROUP) -> Place:
    """Give the place below the directories that a driver makes."""
    return Place(driver, driver.best_effort, f"{driver.best_effort}/{name}")


def place_by_path(path: str) -> Place:
    """Give the place an operator chose, for kubelets with a cgroup root of their own.

    Raises:
        ValueError: fewer than two components, or components that lead elsewhere.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) < 2 or any(part in {".", ".."} for part in parts):
        raise ValueError(f"hierarchy {path[:256]!r} must be PARENT/NAME without . and ..")
    return Place(None, "/".join(parts[:-1]), "/".join(parts))
