#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speak the command line of Hadoop's container-executor, for a NodeManager with LinuxContainerExecutor.

The real program is a setuid binary that no package registry has. LinuxContainerExecutor runs whatever
`yarn.nodemanager.linux-container-executor.path` names, checks nothing about it, and talks to it by arguments and exit
codes; this one does what it does for the NodeManager, with one difference: it never switches users, so it needs the
NodeManager's own user as `nonsecure-mode.local-user`, and is for tests only. Directories are those of the
application's user, who comes second; the first one is whom the real program would switch to.

Source of the arguments: org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor and
container-executor.h, Hadoop 3.3 to 3.5. Only the standard library: it is started for every operation.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

INVALID_ARGUMENTS = 1
INVALID_COMMAND = 3
INVALID_PROCESS = 9
FEATURE_DISABLED = 32
CGROUP_WRITE_FAILED = 27
SEPARATOR = "%"


def main(arguments: Sequence[str]) -> int:
    """Carry out one operation and give its exit code."""
    match list(arguments):
        case ["--checksetup"]:
            return 0
        case [word, *_] if word.startswith("--"):
            return _refuse(f"{word} is not supported", FEATURE_DISABLED)
        case [_, owner, "0", *rest]:
            return localize(owner, *rest)
        case [_, owner, "1", *rest]:
            return launch(owner, rest)
        case [_, _, "2", pid, number]:
            return send(int(pid), int(number))
        case [_, _, "3", path, *bases]:
            return delete(path, bases)
        case [_, _, "5", path]:
            print("\n".join(sorted(each.name for each in Path(path).iterdir())))
            return 0
    return _refuse(f"not understood: {list(arguments)}", INVALID_COMMAND)


def localize(
    user: str, application: str, container: str, tokens: str, local_dirs: str, log_dirs: str, *command: str
) -> int:
    """Make the application's directories, copy its tokens, and become the localizer."""
    folders = [Path(base, "usercache", user, "appcache", application) for base in local_dirs.split(SEPARATOR)]
    _make(*folders, *(Path(base, "usercache", user, "filecache") for base in local_dirs.split(SEPARATOR)))
    _make(*(Path(base, application, container) for base in log_dirs.split(SEPARATOR)))
    _copy(tokens, folders[0] / Path(tokens).name, mode=0o600)
    os.chdir(folders[0])
    os.execvp(command[0], command)  # noqa: S606 - what the NodeManager asked for


def launch(user: str, words: Sequence[str]) -> int:
    """Start a container in a session of its own, inside its groups, and wait for its end."""
    application, container, work, script, tokens, scheme, *rest = words
    if scheme == "--https":
        rest = rest[2:]
    pid_file, local_dirs, log_dirs, resources = rest[:4]
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            _write_whole(pid_file, str(os.getpid()))
            _enter(resources)
            _make(
                *(
                    Path(base, "usercache", user, "appcache", application, container)
                    for base in local_dirs.split(SEPARATOR)
                )
            )
            _make(*(Path(base, application, container) for base in log_dirs.split(SEPARATOR)))
            _make(Path(work))
            _copy(script, Path(work, "launch_container.sh"), mode=0o700)
            _copy(tokens, Path(work, "container_tokens"), mode=0o600)
            os.chdir(work)
            os.umask(0o027)
            os.execv("/bin/bash", ["bash", f"{work}/launch_container.sh"])  # noqa: S606
        except OSError as error:
            os._exit(_refuse(f"cannot launch {container}: {error}", CGROUP_WRITE_FAILED))
    _, status = os.waitpid(child, 0)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    _write_whole(f"{pid_file}.exitcode", str(code))
    return code


def send(pid: int, number: int) -> int:
    """Signal a container's process group, or its process where it leads none; signal 0 asks whether it lives."""
    for send_to in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            send_to(pid, signal.Signals(number) if number else 0)
            return 0
    return INVALID_PROCESS


def delete(path: str, bases: Sequence[str]) -> int:
    """Delete a file or tree, or the same one below each of several directories; what is missing is deleted."""
    for target in [Path(base, path) for base in bases] or [Path(path)]:
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
    return 0


def _enter(resources: str) -> None:
    """Enter groups: `cgroups=none` or `cgroups=FILE%FILE`, each a cgroup.procs (or tasks) of a hierarchy."""
    name, _, files = resources.partition("=")
    if name != "cgroups":
        raise OSError(f"unknown resources {resources!r}")
    for file in files.split(SEPARATOR):
        if file and file != "none":
            Path(file).write_text(str(os.getpid()))


def _make(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)


def _copy(source: str, target: Path, *, mode: int) -> None:
    shutil.copyfile(source, target)
    target.chmod(mode)


def _write_whole(path: str, text: str) -> None:
    temporary = Path(f"{path}.tmp")
    temporary.write_text(text)
    temporary.rename(path)


def _refuse(text: str, code: int) -> int:
    print(text, file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
