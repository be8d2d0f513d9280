# SPDX-License-Identifier: Apache-2.0
"""Name what can go wrong in the cgroup tree; each text has the exact path and what to do about it.

::

    YarnCopilotError
    └── CgroupError                     path, fix
        ├── TreeNotFoundError           no mounted tree, or a controller is missing
        │   └── KubeletNotFoundError    kubelet's directories are absent
        ├── DriverAmbiguousError        directories of both cgroup drivers look alive
        ├── NotDelegatedError           v2: a controller is not enabled for children
        ├── InternalProcessError        v2: processes sit in a group that must have only groups below it
        ├── DirectoryTakenError         another agent works in YARN's directory             retryable
        ├── PermissionDeniedError       read-only mount, or not allowed
        ├── GroupGoneError              the group was removed meanwhile                     retryable
        ├── GroupBusyError              the group still has processes or groups             retryable
        ├── ProcessGoneError            the process ended meanwhile                         retryable
        ├── ForeignProcessError         processes of another PID namespace cannot be signalled
        ├── KillIncompleteError         processes are alive after the deadline              retryable
        └── ValueRefusedError           the kernel refuses the value                        retryable

No `OSError` leaves this package. Source of error numbers: kernel/cgroup/cgroup.c, cgroup-v1.c, mm/memcontrol*.c,
kernel/cgroup/cpuset.c (Linux 6.x) and Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import errno
from typing import ClassVar, Final

from yarn_copilot.errors import YarnCopilotError


class CgroupError(YarnCopilotError):
    """Say that an operation on the cgroup tree failed.

    Attributes:
        what: what failed, without path and fix.
        path: the exact file or directory.
        fix: one sentence on what to do; empty where nothing can be done but to try again.
    """

    def __init__(self, message: str, *, path: str, fix: str = "") -> None:
        super().__init__(f"{message}: {path}" + (f"; {fix}" if fix else ""))
        self.what = message
        self.path = path
        self.fix = fix


class TreeNotFoundError(CgroupError):
    """Say that no mounted tree, or no directory of kubelet in it, was found."""


class KubeletNotFoundError(TreeNotFoundError):
    """Say that a tree is there, but none of kubelet's directories in it."""


class DriverAmbiguousError(CgroupError):
    """Say that directories of both cgroup drivers look alive."""


class NotDelegatedError(CgroupError):
    """Say that a controller is not enabled where children need it (v2)."""


class InternalProcessError(CgroupError):
    """Say that processes sit in a group that may only hold groups (v2)."""


class DirectoryTakenError(CgroupError):
    """Say that the agent of another NodeManager works in the same directory."""

    retryable: ClassVar[bool] = True


class PermissionDeniedError(CgroupError):
    """Say that the tree is mounted read-only, or that this process may not change it."""


class GroupGoneError(CgroupError):
    """Say that the group does not exist (any more)."""

    retryable: ClassVar[bool] = True


class GroupBusyError(CgroupError):
    """Say that the group cannot be removed or changed while something is in it."""

    retryable: ClassVar[bool] = True


class ProcessGoneError(CgroupError):
    """Say that the process ended before it could be moved."""

    retryable: ClassVar[bool] = True


class ForeignProcessError(CgroupError):
    """Say that a group holds processes that this PID namespace cannot name, hence not signal."""


class KillIncompleteError(CgroupError):
    """Say that processes are still there after the deadline of a kill."""

    retryable: ClassVar[bool] = True


class ValueRefusedError(CgroupError):
    """Say that the kernel refuses a value."""

    retryable: ClassVar[bool] = True


_BY_NUMBER: Final[dict[int, type[CgroupError]]] = {
    errno.ENOENT: GroupGoneError,
    errno.ENODEV: GroupGoneError,
    errno.ENOTDIR: GroupGoneError,
    errno.EBUSY: GroupBusyError,
    errno.ENOTEMPTY: GroupBusyError,
    errno.ESRCH: ProcessGoneError,
    errno.EROFS: PermissionDeniedError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
}
_FIXES: Final[dict[int, str]] = {
    errno.EROFS: "mount the host's cgroup tree writable into the container (hostPath, readOnly: false)",
    errno.EACCES: "run as root in a privileged container, or give this user write access to the directory",
    errno.EPERM: "run as root in a privileged container, or give this user write access to the directory",
    errno.EBUSY: "nothing to do: it is tried again once the group is empty, or uses less than the limit",
    errno.ENOSPC: "set cpuset.cpus and cpuset.mems of the group first",
}


def translated(error: OSError, what: str, path: str) -> CgroupError:
    """Turn an error of the kernel into ours.

    Args:
        error: what the system call raised.
        what: verb and object, for the message: "cannot write 5".
        path: the exact file or directory.
    """
    number = error.errno or 0
    kind = _BY_NUMBER.get(number, ValueRefusedError)
    return kind(f"{what} ({error.strerror or error})", path=path, fix=_FIXES.get(number, ""))
