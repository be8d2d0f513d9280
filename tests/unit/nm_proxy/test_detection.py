# SPDX-License-Identifier: Apache-2.0
"""Test that version, driver and place are found out and never assumed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lab.embedded.cgroup.kernel import FakeKernel
from nm_proxy.cgroup.detection import detect, read_mounts
from nm_proxy.cgroup.errors import DriverAmbiguousError, TreeNotFoundError
from nm_proxy.cgroup.hierarchy import find_hierarchies, unmounted_lookalikes
from nm_proxy.cgroup.layout import Driver, Place, Version, place_by_driver, place_by_path
from nm_proxy.cgroup.mounts import mounts_below, parse_mounts
from tests.unit.nm_proxy.world import HYBRID_MIXED, HYBRID_V1, V1_SEPARATE, V2, Node

SYSTEMD = "kubepods.slice/kubepods-besteffort.slice"
CGROUPFS = "kubepods/besteffort"


def kernel_with(folder: Path, hierarchies: tuple[tuple[str, str, tuple[str, ...]], ...] = V1_SEPARATE) -> FakeKernel:
    return FakeKernel(folder, hierarchies=hierarchies)


def place_of(kernel: FakeKernel, **options: object) -> Place:
    mounts = parse_mounts(kernel.mountinfo())
    return detect(str(kernel.root), mounts=mounts, files=kernel, **options).place  # type: ignore[arg-type]


def test_finds_the_driver_of_every_kind_of_node(any_node: Node) -> None:
    assert any_node.place.driver is any_node.driver
    expected = SYSTEMD if any_node.driver is Driver.SYSTEMD else CGROUPFS
    assert any_node.place.yarn == f"{expected}/hadoop-yarn"
    assert any_node.tree.version is (Version.V2 if any_node.kind in ("v2", "mixed") else Version.V1)


def test_finds_each_controller_once_on_a_mixed_host(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, HYBRID_MIXED)
    found = find_hierarchies(parse_mounts(kernel.mountinfo()), str(kernel.root), kernel)
    assert found.required("memory").version is Version.V2
    assert found.required("cpu").version is Version.V1
    assert found.every[0] is found.required("cpu")


def test_does_not_use_a_version_2_tree_without_cpu_and_memory(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, HYBRID_V1)
    found = find_hierarchies(parse_mounts(kernel.mountinfo()), str(kernel.root), kernel)
    assert {one.version for one in found.every} == {Version.V1}


def test_ignores_directories_that_are_not_mounted(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, V2)
    (kernel.root / "memory" / "kubepods" / "besteffort").mkdir(parents=True)
    kernel.make_kubelet_directories(SYSTEMD)
    found = detect(str(kernel.root), mounts=parse_mounts(kernel.mountinfo()), files=kernel)
    assert found.place.driver is Driver.SYSTEMD
    assert found.hierarchies.version is Version.V2
    assert unmounted_lookalikes(found.hierarchies, str(kernel.root), kernel) == [str(kernel.root / "memory")]


def test_reports_no_lookalikes_on_version_1(node: Node) -> None:
    assert unmounted_lookalikes(node.tree.hierarchies, str(node.kernel.root), node.kernel) == []


def test_says_that_nothing_is_mounted(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    with pytest.raises(TreeNotFoundError, match="no cgroup hierarchy is mounted") as caught:
        detect(str(kernel.root), mounts=[], files=kernel)
    assert caught.value.path == str(kernel.root)
    assert "hostPath" in caught.value.fix


@pytest.mark.parametrize("missing", ["cpu", "memory"])
def test_says_which_controller_is_missing(tmp_path: Path, missing: str) -> None:
    kernel = kernel_with(tmp_path, tuple(one for one in V1_SEPARATE if one[1] != missing))
    with pytest.raises(TreeNotFoundError, match=f"controller {missing} is in no hierarchy"):
        place_of(kernel)


def test_a_version_2_tree_that_cannot_be_read_is_no_tree(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, V2)
    kernel.fail("read", "cgroup.controllers", errno.EACCES)
    with pytest.raises(TreeNotFoundError):
        place_of(kernel)


def test_does_not_guess_a_driver_without_kubelets_directories(tmp_path: Path) -> None:
    with pytest.raises(TreeNotFoundError, match="driver is unknown"):
        place_of(kernel_with(tmp_path))


def test_of_two_drivers_the_one_with_pods_wins(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    kernel.make_kubelet_directories(CGROUPFS)
    kernel.make_kubelet_directories(SYSTEMD, "kubepods-besteffort-pod1.slice")
    assert place_of(kernel).driver is Driver.SYSTEMD


@pytest.mark.parametrize("pods", [(), ("pod1", "kubepods-besteffort-pod1.slice")], ids=["none", "both"])
def test_of_two_drivers_without_a_sign_none_is_taken(tmp_path: Path, pods: tuple[str, ...]) -> None:
    kernel = kernel_with(tmp_path)
    kernel.make_kubelet_directories(CGROUPFS, *pods[:1])
    kernel.make_kubelet_directories(SYSTEMD, *pods[1:])
    with pytest.raises(DriverAmbiguousError, match=r"set cgroup\.driver"):
        place_of(kernel)
    assert place_of(kernel, driver=Driver.CGROUPFS).driver is Driver.CGROUPFS


def test_pods_that_cannot_be_listed_are_no_sign(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    kernel.make_kubelet_directories(CGROUPFS, "pod1")
    kernel.make_kubelet_directories(SYSTEMD)
    kernel.fail("list", "besteffort", errno.EACCES)
    with pytest.raises(DriverAmbiguousError):
        place_of(kernel)


def test_takes_the_path_an_operator_gives(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    kernel.make_kubelet_directories("kubelet/kubepods/besteffort")
    place = place_of(kernel, hierarchy="/kubelet/kubepods/besteffort/hadoop-yarn/")
    assert place == Place(None, "kubelet/kubepods/besteffort", "kubelet/kubepods/besteffort/hadoop-yarn")


def test_says_which_directory_of_the_operators_path_is_missing(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    with pytest.raises(TreeNotFoundError, match="kubelet/besteffort"):
        place_of(kernel, hierarchy="kubelet/besteffort/hadoop-yarn")


@pytest.mark.parametrize("path", ["", "/", "one", "a/../b", "./b"])
def test_refuses_a_path_that_leads_elsewhere(path: str) -> None:
    with pytest.raises(ValueError, match="hierarchy"):
        place_by_path(path)


@pytest.mark.parametrize("name", ["", "..", "container_1/../../x", "container_1_2_3_4", "tasks"])
def test_only_container_ids_become_paths(name: str) -> None:
    with pytest.raises(ValueError, match="not a container id"):
        place_by_driver(Driver.CGROUPFS).container(name)


def test_reads_mounts_with_blanks_options_and_other_lines() -> None:
    text = (
        "36 25 0:31 / /host\\040cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
        "37 25 0:32 /../.. /host\\040cgroup/systemd ro - cgroup cgroup rw,xattr,name=systemd\n"
        "38 25 0:33 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"
        "39 25 0:34 / /proc rw - proc proc rw\n"
        "malformed\n"
        "40 25 0:35 / /x rw - cgroup\n"
    )
    mounts = parse_mounts(text)
    assert [(one.version, one.mount_point, sorted(one.controllers), one.read_only) for one in mounts] == [
        (Version.V1, "/host cgroup/cpu,cpuacct", ["cpu", "cpuacct"], False),
        (Version.V1, "/host cgroup/systemd", ["name=systemd"], True),
        (Version.V2, "/sys/fs/cgroup", [], True),
    ]
    assert [one.mount_point for one in mounts_below(mounts, "/host cgroup")] == [
        "/host cgroup/cpu,cpuacct",
        "/host cgroup/systemd",
    ]
    assert [one.mount_point for one in mounts_below(mounts, "/sys/fs/cgroup/")] == ["/sys/fs/cgroup"]


def test_of_two_mounts_at_one_point_the_later_one_is_seen() -> None:
    text = "1 0 0:1 / /c/cpu rw - cgroup cgroup rw,cpu\n2 0 0:2 / /c/cpu ro - cgroup cgroup rw,cpu\n"
    (mount,) = mounts_below(parse_mounts(text), "/c")
    assert mount.read_only


def test_reads_the_mounts_of_this_process() -> None:
    assert all(mount.mount_point.startswith("/") for mount in read_mounts())


def test_says_that_mounts_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TreeNotFoundError, match="mount /proc"):
        read_mounts(str(tmp_path / "none"))
