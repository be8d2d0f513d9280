# SPDX-License-Identifier: Apache-2.0
"""Say how nm-proxy ends: one code for each kind of trouble, so that a pod's last state names it without a log.

The numbers are part of the interface and are never given to another kind.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Give each end its number and its meaning."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> ExitCode:
        """Make a member that is a number and carries its meaning."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    @property
    def kind(self) -> str:
        """Name it as the documentation does."""
        return self.name.lower().replace("_", "-")

    OK = 0, "done, or stopped in order on request"
    FAILED = 1, "an error that none of the other codes names; the last line of the log says which"
    CONFIGURATION = 2, "wrong command line, settings file or Hadoop configuration"
    CGROUP_TREE = 10, "no cgroup tree is mounted where `cgroup.root` says, or cpu or memory is in none of it"
    CGROUP_DRIVER = 11, "kubelet's cgroup driver cannot be told, or its best-effort directory is missing"
    CGROUP_READ_ONLY = 12, "the tree is mounted read-only or may not be written"
    CGROUP_DELEGATION = (
        13,
        "cgroup v2: a controller is missing where containers need it, or tasks may not be moved there",
    )
    CGROUP_SHADOWED = 14, "a stale version 1 tree beside version 2 would be taken for the real one"
    CGROUP_INTERNAL_PROCESSES = 15, "cgroup v2: processes sit in a group that may only hold groups"
    CGROUP_TAKEN = 16, "another NodeManager's nm-proxy works in the same directory of the cgroup tree"
    HOST_NAME = 20, "the host name is missing, malformed or longer than 64 characters"
    PORT = 21, "the NodeManager's port, which must stay the same over restarts, is in use or not of this machine"
    RESOLUTION = 22, "the host name cannot be resolved"
    CAPACITY = 30, "memory or vcores are below the ResourceManager's minimum allocation"
    JAVA = 40, "Java, or the NodeManager's command, is missing or too old"
    HADOOP_VERSION = 41, "the Hadoop version cannot do what the settings ask for"
    RECOVERY = 50, "the recovery directory would not outlive the container, or cannot be written"
