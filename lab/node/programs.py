# SPDX-License-Identifier: Apache-2.0
"""Hold what tasks do in tests of the node side: sleep, fork without end, end; and a kernel that lacks something."""

from __future__ import annotations

import subprocess
import time

from lab.node.machine import Machine, container_id
from nm_proxy.cgroup.files import KernelFiles

SLEEP = "import time\ntime.sleep(600)\n"
STORM = """
import random, signal, time
seed, until = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
dice = random.Random(seed)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def live(depth):
    while time.monotonic() < until:
        if depth < 4 and dice.random() < 0.7:
            if os.fork() == 0:
                dice.seed(seed * 1000 + os.getpid())
                if dice.random() < 0.3:
                    os.setsid()
                if dice.random() < 0.3 and os.fork():
                    os._exit(0)
                live(depth + 1)
        time.sleep(dice.random() * 0.004)
    time.sleep(600)
live(0)
"""


class WithoutKill(KernelFiles):
    """Hide `cgroup.kill`, as a kernel before 5.14."""

    def exists(self, path: str) -> bool:
        """Tell whether a path exists, but for that one."""
        return not path.endswith("cgroup.kill") and super().exists(path)


def end(*processes: subprocess.Popen[bytes], timeout_seconds: float = 30.0) -> None:
    """End tasks that a machine launched, and close what was read from them."""
    for process in processes:
        process.kill()
        process.wait(timeout=timeout_seconds)
        if process.stdout is not None:
            process.stdout.close()


def storms(machine: Machine, runs: int, *, seconds: float = 0.06) -> tuple[int, int]:
    """Adopt `runs` tasks that fork all the time for some seconds, and count escaped and all processes."""
    escaped = seen = 0
    for run in range(runs):
        number = run + 2
        machine.know(number, memory_mib=512)
        process = machine.launch(number, STORM, str(run), str(seconds))
        machine.launch_pass(number)
        time.sleep(seconds)
        machine.look()
        escaped += len(machine.outside(number))
        seen += len(machine.carriers(number))
        machine.killer.kill(machine.path(number), timeout_seconds=30)
        process.wait(timeout=30)
        if process.stdout is not None:
            process.stdout.close()
        if machine.carriers(number):
            raise AssertionError(f"run {run} left processes")
        del machine.reports[container_id(number)]
        machine.pid_file(number).unlink()
        machine.tree.remove(machine.path(number))
    return escaped, seen
