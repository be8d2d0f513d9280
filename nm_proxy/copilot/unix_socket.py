# SPDX-License-Identifier: Apache-2.0
"""Make a unix socket that only root (and its group) can reach, and read who is on the other side."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any, Final, NamedTuple

from nm_proxy.copilot.serving import ServerStartError

MODE: Final = 0o660
_BACKLOG: Final = 64
_CREDENTIALS: Final = struct.Struct("iII")
"""struct ucred: pid, uid, gid (unix(7))."""


class Peer(NamedTuple):
    """Hold who connected, by the kernel's word at that time."""

    pid: int
    uid: int
    gid: int


def bind(path: Path) -> socket.socket:
    """Bind a listening socket with mode 0660, owned by this process's user and group root where that is possible.

    It is made under another name and renamed, so it is never seen with another mode. The leftover of a process that
    ended is replaced; a socket on which somebody listens, and anything that is no socket, is not.

    Raises:
        ServerStartError: the path cannot be used; the text says why.
    """
    _refuse_occupied(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        os.fchmod(server.fileno(), MODE)
        server.bind(str(temporary))
        temporary.chmod(MODE)
        if os.geteuid() == 0:
            os.chown(temporary, 0, 0)
        server.listen(_BACKLOG)
        server.setblocking(False)
        temporary.rename(path)
    except OSError as error:
        server.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise ServerStartError(f"cannot listen on socket {path} ({error.strerror or error})") from error
    return server


def remove(path: Path) -> None:
    """Remove the socket's name once nobody listens on it any more; that of a successor stays."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode) and not _is_listening(path):
            path.unlink()


def peer_of(transport_socket: Any) -> Peer:
    """Read the peer's credentials (SO_PEERCRED) of a connected unix socket."""
    raw = transport_socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(raw))


def _refuse_occupied(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise ServerStartError(f"cannot listen on socket {path}: something that is no socket is there; remove it")
    if _is_listening(path):
        raise ServerStartError(f"cannot listen on socket {path}: another process listens on it")


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
