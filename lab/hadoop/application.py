# SPDX-License-Identifier: Apache-2.0
"""Drive a real YARN application: ask for containers, release them, see what becomes of them.

The Java program in `lab/hadoop/app` does the work; it is told by JSON lines and answers with JSON lines. A thread
reads them; every wait has a deadline. An application lives in one queue, so one handle holds one application for
each queue that was asked in.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from lab.errors import LabError
from lab.hadoop import conf
from lab.hadoop.yarn import Yarn
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess

_HEAP_MIB: Final = 128
WAIT_SECONDS: Final = 60.0
EXIT_PREEMPTED: Final = -102
EXIT_ABORTED: Final = -100
"""Given back by the application, or gone with its node; YARN tells them apart by its words alone."""

_GIVEN_BACK: Final = ("released by application", "completed application")
"""SchedulerUtils.RELEASED_CONTAINER and COMPLETED_APPLICATION, Hadoop 3.3.6 to 3.5.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Describe a container as the application sees it.

    Attributes:
        is_running: the NodeManager has agreed to start it; its process follows within moments (and may have ended
            since, see `exit_status`).
        exit_status: None while it lives; 0 and above from the process, below from YARN (-102 preempted, -100 released).
    """

    id: str
    ask: int
    queue: str
    node: str
    memory_mib: int
    vcores: int
    is_running: bool = False
    exit_status: int | None = None
    diagnostics: str = ""

    @property
    def was_taken_away(self) -> bool:
        """Tell whether YARN, or somebody on the node, ended it against its application's will."""
        if self.exit_status == EXIT_ABORTED:
            return not any(words in self.diagnostics for words in _GIVEN_BACK)
        return self.exit_status not in {None, 0}


class Application:
    """Control one application (one for each queue); safe to use from several threads."""

    def __init__(
        self,
        group: ProcessGroup,
        yarn: Yarn,
        *,
        name: str,
        classes: Path,
        user: str,
        am_memory_mib: int | None,
        am_vcores: int,
    ) -> None:
        self.name = name
        self.application_ids: dict[str, str] = {}
        self.errors: list[str] = []
        self.preemption_notices: list[dict[str, Any]] = []
        self._containers: dict[str, Container] = {}
        self._registered: set[str] = set()
        self._finished: set[str] = set()
        self._changed = threading.Condition()
        self._ask_ids = itertools.count(1)
        self._default_queue = conf.DEFAULT_QUEUE
        argv = yarn.java.command("lab.app.Main", yarn.conf_dir, heap_mib=_HEAP_MIB, classes=classes)
        argv.append(name)
        if am_memory_mib is not None:
            master = yarn.java.command("", yarn.conf_dir, heap_mib=_HEAP_MIB, classes=classes)[:-1]
            argv += [str(am_memory_mib), str(am_vcores), " ".join(f"'{part}'" for part in master)]
        self._process: ServerProcess = group.add(
            Command(
                name=name,
                argv=argv,
                log_path=group.state.log_path(name),
                environment={"HADOOP_USER_NAME": user, "HADOOP_HOME": str(yarn.folder)},
                has_stdin=True,
                captures_stdout=True,
            )
        )

    # Commands

    def start(self, queue: str | None = None) -> None:
        """Submit to a queue and wait until the ApplicationMaster is registered.

        Raises:
            LabError: YARN refused, or it took too long.
        """
        self._default_queue = queue or self._default_queue
        self._process.start()
        threading.Thread(target=self._read, name=f"{self.name}-events", daemon=True).start()
        self._send({"command": "open", "queue": self._default_queue})
        self.wait_for(lambda: self._default_queue in self._registered, what="its master is registered")

    def ask(
        self,
        *,
        count: int = 1,
        memory_mib: int = 128,
        vcores: int = 1,
        queue: str | None = None,
        node: str | None = None,
        duration_seconds: float | None = None,
        shell_command: str | None = None,
    ) -> int:
        """Ask for equal containers; they are held until released.

        Args:
            count: how many; what does not fit stays pending.
            memory_mib: size of each; the scheduler rounds it up to its minimum.
            vcores: size of each.
            queue: leaf queue; None: the one of `Lab.submit`. A new queue submits a further application.
            node: only on this node: host name, or host:port where several NodeManagers share a host.
            duration_seconds: containers end by themselves (exit status 0) after so long; None: never.
            shell_command: what a container runs instead of sleeping.

        Returns:
            The ask's number, as in `Container.ask`.
        """
        ask = next(self._ask_ids)
        command: dict[str, Any] = {
            "command": "ask",
            "queue": queue or self._default_queue,
            "id": ask,
            "memory_mib": memory_mib,
            "vcores": vcores,
            "count": count,
        }
        if node is not None:
            command["node"] = node
        if duration_seconds is not None:
            command["duration_seconds"] = duration_seconds
        if shell_command is not None:
            command["shell_command"] = shell_command
        self._send(command)
        return ask

    def release(self, count: int = 1, *, queue: str | None = None) -> None:
        """Give the newest containers of a queue back."""
        self._send({"command": "release", "queue": queue or self._default_queue, "count": count})

    def release_container(self, container: Container) -> None:
        """Give one container back."""
        self._send({"command": "release_container", "queue": container.queue, "container": container.id})

    def cancel_pending(self, *, queue: str | None = None) -> None:
        """Withdraw what was asked for in a queue and not given yet."""
        self._send({"command": "cancel", "queue": queue or self._default_queue})

    def stop(self, *, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Finish all its applications (YARN stops their containers) and end the process; safe to call twice."""
        if not self._process.is_running:
            return
        stdin = self._stdin()
        if not stdin.closed:
            stdin.close()
        self.wait_for(lambda: not self._process.is_running, what="it has stopped", timeout_seconds=timeout_seconds)

    def kill(self) -> None:
        """End the process with SIGKILL: the RM notices a missing master only after its own timeout."""
        self._process.kill()

    # What became of it

    def containers(self) -> list[Container]:
        """Return all containers ever given, oldest first."""
        with self._changed:
            return list(self._containers.values())

    def allocated(self) -> list[Container]:
        """Return the containers that are held, started or not."""
        return [each for each in self.containers() if each.exit_status is None]

    def running(self) -> list[Container]:
        """Return the containers whose process was started and has not ended."""
        return [each for each in self.allocated() if each.is_running]

    def completed(self) -> list[Container]:
        """Return the containers that have ended, with their exit status."""
        return [each for each in self.containers() if each.exit_status is not None]

    def killed(self) -> list[Container]:
        """Return the containers that YARN took away (preempted, lost with their node, killed)."""
        return [each for each in self.completed() if each.was_taken_away]

    def wait_running(self, count: int, *, timeout_seconds: float = WAIT_SECONDS) -> list[Container]:
        """Wait until exactly `count` containers run.

        Raises:
            LabError: it took too long; what is known is in the message.
        """
        self.wait_for(
            lambda: len(self.running()) == count == len(self.allocated()),
            what=f"{count} containers run",
            timeout_seconds=timeout_seconds,
        )
        return self.running()

    def wait_for(self, condition: Callable[[], bool], *, what: str, timeout_seconds: float = WAIT_SECONDS) -> None:
        """Wait until a condition on this handle holds.

        Raises:
            LabError: it took too long, or the process ended first.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while True:
                # Looked at first: what is waited for may be the end itself, and it may come between two looks.
                has_ended = not self._process.is_running
                if condition():
                    return
                left = deadline - time.monotonic()
                if left <= 0 or has_ended:
                    why = "its process has ended" if has_ended else f"not within {timeout_seconds:g} s"
                    raise LabError(f"{self.name}: {what}: {why}; {self._summary()}")
                self._changed.wait(min(left, 0.5))

    def _summary(self) -> str:
        return (
            f"running {len(self.running())}, allocated {len(self.allocated())}, completed "
            f"{[each.exit_status for each in self.completed()]}, errors {self.errors[-3:]}\n{self._process.tail(10)}"
        )

    # The wire

    def _stdin(self) -> IO[bytes]:
        stdin = self._process.child.stdin
        if stdin is None:
            raise LabError(f"{self.name} has no standard input")
        return stdin

    def _send(self, command: dict[str, Any]) -> None:
        stdin = self._stdin()
        try:
            stdin.write(json.dumps(command).encode() + b"\n")
            stdin.flush()
        except (OSError, ValueError) as error:
            raise LabError(f"{self.name} takes no commands any more: {error}\n{self._process.tail(10)}") from error

    def _read(self) -> None:
        stdout = self._process.child.stdout
        if stdout is None:
            return
        with stdout:
            for line in stdout:
                event = json.loads(line)
                with self._changed:
                    self._take(event)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "submitted":
                self.application_ids[event["queue"]] = event["application"]
            case "registered":
                self._registered.add(event["queue"])
            case "allocated":
                self._add(event)
            case "running":
                self._update(event["container"], is_running=True)
            case "completed":
                self._update(
                    event["container"], exit_status=event["exit_status"], diagnostics=event.get("diagnostics") or ""
                )
            case "preemption":
                self.preemption_notices.append(event)
            case "finished":
                self._finished.add(event["queue"])
            case "error" | "master_lost":
                self.errors.append(event.get("message") or event["event"])

    def _add(self, event: dict[str, Any]) -> None:
        names = ("ask", "queue", "node", "memory_mib", "vcores")
        self._containers[event["container"]] = Container(id=event["container"], **{name: event[name] for name in names})

    def _update(self, container_id: str, **changes: Any) -> None:
        known = self._containers.get(container_id)
        if known is not None:
            self._containers[container_id] = replace(known, **changes)
