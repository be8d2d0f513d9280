# SPDX-License-Identifier: Apache-2.0
"""Run tests inside a virtual machine and bring their verdicts back.

QEMU emulates the processors (TCG), since the machines that tests run on may have no virtualisation of their own;
everything is about ten times slower there. The machine has no network and no disk: its file system is the initial
memory file system, results leave it over a serial line.
"""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, tail_of
from lab.processes.progress import Progress
from lab.processes.state import StateFolder
from lab.vm.image import ensure_interpreter, write_image
from lab.vm.kernel import ensure_kernel

_QEMU: Final = "qemu-system-x86_64"
_MEMORY_MIB: Final = 1536
_CPUS: Final = 2
MARK: Final = "made-by=lab.vm"
"""In the kernel's command line, by which tests know that they are in such a machine."""

_KERNEL_OPTIONS: Final = "console=ttyS0 quiet panic=-1 mitigations=off psi=1 cgroup_no_v1=all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Hold how one test of the machine ended.

    Attributes:
        problem: what failed, with pytest's account; empty for a test that passed.
        was_skipped: it did not run, and `problem` says why.
        figures: what it recorded.
        seconds: how long it took, by the machine's clock.
    """

    problem: str
    was_skipped: bool
    figures: Mapping[str, str]
    seconds: float


def prepare(progress: Progress) -> None:
    """Fetch and build everything that a run needs.

    Raises:
        LabError: QEMU is missing, or the kernel cannot be fetched.
    """
    if shutil.which(_QEMU) is None:
        raise LabError(f"the program {_QEMU} is not installed: apt-get install qemu-system-x86")
    ensure_kernel(progress)
    ensure_interpreter(progress)


def run_tests(
    arguments: Sequence[str], *, timeout_seconds: float, progress: Progress, carried: Mapping[str, Path] | None = None
) -> dict[str, Verdict]:
    """Run pytest in a virtual machine.

    Args:
        arguments: for pytest, for example the path of a test file below the project's root; no blanks in them.
        timeout_seconds: the machine is ended then.
        progress: where to tell what takes long.
        carried: files to put into the machine, by their absolute path there.

    Returns:
        A verdict for each test, by its name.

    Raises:
        LabError: QEMU is missing, the machine did not end in time, or it sent no report.
    """
    prepare(progress)
    group = ProcessGroup(StateFolder())
    try:
        folder = group.state.folder("machine")
        image, report = folder / "image", folder / "report.xml"
        write_image(image, init="lab.vm.init", carried=carried or {}, progress=progress)
        console = group.state.log_path("machine")
        machine = group.add(
            Command(name="machine", argv=_command(image, report, arguments, ensure_kernel(progress)), log_path=console)
        )
        machine.start()
        try:
            machine.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise LabError(f"the machine is not done after {timeout_seconds:g} s\n{tail_of(console, 60)}") from None
        return _read(report, console)
    finally:
        group.close()


def _command(image: Path, report: Path, arguments: Sequence[str], kernel: Path) -> list[str]:
    return [
        _QEMU,
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-machine", "q35", "-smp", str(_CPUS), "-m", str(_MEMORY_MIB)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-serial", f"file:{report}"),
        *("-kernel", str(kernel), "-initrd", str(image)),
        *("-append", f"{_KERNEL_OPTIONS} {MARK} -- {' '.join(arguments)}"),
    ]


def _read(report: Path, console: Path) -> dict[str, Verdict]:
    try:
        root = ElementTree.fromstring(report.read_bytes())  # noqa: S314 - our own tests wrote it
    except (FileNotFoundError, ElementTree.ParseError) as error:
        raise LabError(f"the machine sent no report ({error})\n{tail_of(console, 60)}") from error
    return {case.get("name", ""): _verdict(case) for case in root.iter("testcase")}


def _verdict(case: ElementTree.Element) -> Verdict:
    trouble = [found for kind in ("failure", "error", "skipped") for found in case.iter(kind)]
    return Verdict(
        problem="\n".join(f"{one.get('message', '')}\n{one.text or ''}" for one in trouble),
        was_skipped=any(one.tag == "skipped" for one in trouble),
        figures={one.get("name", ""): one.get("value", "") for one in case.iter("property")},
        seconds=float(case.get("time", "0")),
    )
