# SPDX-License-Identifier: Apache-2.0
"""Be process 1 of the virtual machine: mount what tests need, run them, send the report, switch the machine off.

The first serial line is the console, the second one takes the report (JUnit's XML). Words of the kernel command line
behind `--` are given to pytest.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import termios
import tty
from pathlib import Path
from typing import Final

_MOUNTS: Final = (
    ("proc", "/proc", "proc"),
    ("sysfs", "/sys", "sysfs"),
    ("devtmpfs", "/dev", "devtmpfs"),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2"),
    ("tmpfs", "/tmp", "tmpfs"),  # noqa: S108 - this machine's own
)
_CONTROLLERS: Final = "+cpuset +cpu +io +memory +pids"
_REPORT: Final = Path("/tmp/report.xml")  # noqa: S108 - this machine's own
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_POWER_OFF: Final = 0x4321FEDC


def main() -> None:
    """Do everything; the machine is off afterwards, whatever happened.

    Raises:
        RuntimeError: this is not process 1, so this machine is not one to switch off.
    """
    if os.getpid() != 1:
        raise RuntimeError("only process 1 of the virtual machine may run this")
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        for source, target, kind in _MOUNTS:
            if libc.mount(source.encode(), target.encode(), kind.encode(), 0, None) != 0:
                raise OSError(ctypes.get_errno(), f"cannot mount {target}")
        _open_console()
        _raise_loopback()
        Path("/sys/fs/cgroup/cgroup.subtree_control").write_text(_CONTROLLERS)
        _run_tests()
        _send_report()
    finally:
        os.sync()
        libc.reboot(_POWER_OFF)


def _send_report() -> None:
    with Path("/dev/ttyS1").open("wb", buffering=0) as line:
        tty.setraw(line.fileno())
        content = memoryview(_REPORT.read_bytes())
        while content:
            content = content[line.write(content) :]
        termios.tcdrain(line.fileno())


def _open_console() -> None:
    console = os.open("/dev/ttyS0", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(console, number)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _run_tests() -> None:
    """Run pytest and meanwhile reap whoever is orphaned, as process 1 has to."""
    arguments = Path("/proc/cmdline").read_text().partition(" -- ")[2].split()
    environment = {
        "PATH": "/bin",
        "HOME": "/root",
        "PYTHONPATH": os.pathsep.join(sys.path[:2]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", f"--junitxml={_REPORT}", "-p", "no:cacheprovider", *arguments]
    child = subprocess.Popen(command, env=environment, cwd="/project")
    while True:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(-1, 0)[0] == child.pid:
                return
