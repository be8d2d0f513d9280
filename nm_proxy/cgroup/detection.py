# SPDX-License-Identifier: Apache-2.0
"""Find out which cgroup version and kubelet driver this node has; never assume either.

The driver shows in the directories that kubelet makes: `kubepods.slice` with systemd, `kubepods` with cgroupfs. A
wrong guess makes a stray directory that koordlet never reads, so nothing found is an error, and where both
exist the one in which pods live wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nm_proxy.cgroup.errors import CgroupError, DriverAmbiguousError, KubeletNotFoundError, TreeNotFoundError
from nm_proxy.cgroup.files import Files, KernelFiles
from nm_proxy.cgroup.hierarchy import Hierarchies, Hierarchy, find_hierarchies, find_others
from nm_proxy.cgroup.layout import YARN_GROUP, Driver, Place, place_by_driver, place_by_path
from nm_proxy.cgroup.mounts import Mount, parse_mounts

SELF_MOUNTINFO = "/proc/self/mountinfo"


@dataclass(frozen=True, slots=True)
class Detection:
    """Hold what was found: where controllers are and where YARN's containers belong.

    Attributes:
        hierarchies: in use.
        place: of YARN's containers.
        others: mounted beside them, and not in use.
    """

    hierarchies: Hierarchies
    place: Place
    others: tuple[Hierarchy, ...] = ()


def read_mounts(path: str = SELF_MOUNTINFO) -> list[Mount]:
    """Read the cgroup mounts of this process's mount namespace.

    Raises:
        TreeNotFoundError: the file cannot be read.
    """
    try:
        return parse_mounts(Path(path).read_text("utf-8", "surrogateescape"))
    except OSError as error:
        raise TreeNotFoundError(f"cannot read the mounts ({error.strerror})", path=path, fix="mount /proc") from error


def detect(
    root: str,
    *,
    mounts: Iterable[Mount] | None = None,
    files: Files | None = None,
    driver: Driver | None = None,
    hierarchy: str | None = None,
    name: str = YARN_GROUP,
) -> Detection:
    """Find version, driver and place.

    Args:
        root: where the host's tree is visible.
        mounts: what is mounted; None reads it.
        files: how to touch the tree; None is the kernel's.
        driver: an operator's word; None finds out.
        hierarchy: an operator's whole path for YARN's directory, for kubelets with another cgroup root; it wins.
        name: YARN's directory below best-effort.

    Raises:
        TreeNotFoundError: no tree, or no cpu or memory controller.
        KubeletNotFoundError: kubelet's directories are absent.
        DriverAmbiguousError: directories of both drivers exist and neither, or both, hold pods.
        ValueError: `hierarchy` is no path.
    """
    access = files or KernelFiles()
    mounted = read_mounts() if mounts is None else list(mounts)
    found = find_hierarchies(mounted, root, access)
    place = place_by_path(hierarchy) if hierarchy else place_by_driver(driver or _driver(found, access), name=name)
    missing = [
        one for one in found.every if not access.exists(one.at(place.best_effort)) and _is_vital(one.controllers)
    ]
    if missing:
        raise KubeletNotFoundError(
            "kubelet's best-effort directory does not exist",
            path=missing[0].at(place.best_effort),
            fix="run on a node with kubelet, or set cgroup.hierarchy to PARENT/hadoop-yarn below its cgroup root",
        )
    return Detection(found, place, find_others(mounted, root, found))


def _is_vital(controllers: frozenset[str]) -> bool:
    return bool(controllers & {"cpu", "memory"})


def _driver(hierarchies: Hierarchies, files: Files) -> Driver:
    top = hierarchies.required("cpu")
    present = [driver for driver in Driver if files.exists(top.at(driver.best_effort))]
    if not present:
        raise KubeletNotFoundError(
            "neither kubepods.slice nor kubepods has a best-effort directory, so kubelet's cgroup driver is unknown",
            path=top.at(""),
            fix="mount the host's tree, not this container's; else set cgroup.driver or cgroup.hierarchy",
        )
    if len(present) == 1:
        return present[0]
    alive = [driver for driver in present if _has_pods(top.at(driver.best_effort), driver, files)]
    if len(alive) == 1:
        return alive[0]
    raise DriverAmbiguousError(
        "directories of both cgroup drivers exist and pods tell nothing",
        path=top.at(""),
        fix="set cgroup.driver to systemd or cgroupfs, as in kubelet's configuration, and remove the stale directory",
    )


def _has_pods(path: str, driver: Driver, files: Files) -> bool:
    try:
        return any(name.startswith(driver.pod_prefix) for name in files.directories(path))
    except CgroupError:
        return False
