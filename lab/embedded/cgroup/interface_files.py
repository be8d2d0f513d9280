# SPDX-License-Identifier: Apache-2.0
"""Name the files that each controller shows in a new group, with what they say at first."""

from __future__ import annotations

from typing import Final

V1_UNLIMITED: Final = "9223372036854771712"
V2_CONTROLLERS: Final = ("cpuset", "cpu", "io", "memory", "pids")
CPUS: Final = "0-3"

_CALM: Final = "avg10=0.00 avg60=0.00 avg300=0.00 total=0"
V1_FILES: Final = {
    "cpu": {
        "cpu.shares": "1024",
        "cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0",
        "cpu.cfs_quota_us": "-1",
    },
    "cpuacct": {"cpuacct.usage": "0"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "memory": {
        "memory.limit_in_bytes": V1_UNLIMITED,
        "memory.usage_in_bytes": "0",
        "memory.max_usage_in_bytes": "0",
        "memory.failcnt": "0",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0",
    },
    "freezer": {"freezer.state": "THAWED"},
    "devices": {"devices.list": "a *:* rwm", "devices.allow": "", "devices.deny": ""},
    "pids": {"pids.max": "max"},
}
V2_FILES: Final = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "memory": {
        "memory.max": "max",
        "memory.current": "0",
        "memory.peak": "0",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0",
        "memory.oom.group": "0",
        "memory.pressure": f"some {_CALM}\nfull {_CALM}",
    },
    "cpuset": {"cpuset.cpus": "", "cpuset.cpus.effective": CPUS},
    "io": {},
    "pids": {"pids.max": "max"},
}
V2_BASE: Final = {
    "cgroup.subtree_control": "",
    "cgroup.freeze": "0",
    "cgroup.events": "populated 0\nfrozen 0",
    "cgroup.kill": "",
    "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0",
    "cpu.pressure": "some avg10=1.50 avg60=0.00 avg300=0.00 total=2500000",
}
