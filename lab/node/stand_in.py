# SPDX-License-Identifier: Apache-2.0
"""Stand for a NodeManager where there is no Java: launch tasks as one does, list them, find them again.

Run as `python -m lab.node.stand_in FOLDER PORT CONTAINER_ID...`; standard library only, because it runs on an emulated
processor. The first run launches a task for each id, by way of a shell that writes the pid file first and then becomes
the task in a session of its own. A later run launches nothing: it lists those that still live, as a NodeManager with
recovery does. An id written to FOLDER/finished is called finished, whatever its processes do. SIGTERM ends it at once.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from lab.embedded.node_manager import documents

MEMORY_MIB: Final = 128
VCORES: Final = 2
FINISHED_FILE: Final = "finished"
_LAUNCH: Final = 'echo $$ >"$1.tmp" && mv "$1.tmp" "$1" && exec setsid sh -c "sleep 3600 & wait"'


class StandIn:
    """Hold the tasks by what is on disk, so that the next run knows as much."""

    def __init__(self, folder: Path, port: int, container_ids: Sequence[str]) -> None:
        self.folder, self.port, self.container_ids = folder, port, container_ids

    def launch(self) -> None:
        """Launch every task, or look for those that a former run launched."""
        begun = self.folder / "begun"
        if begun.exists():
            print(f"found {len(list(self.living()))} tasks again", flush=True)
            return
        begun.write_text("")
        for name in self.container_ids:
            pid_file = self._pid_file(name)
            pid_file.parent.mkdir(parents=True)
            subprocess.Popen(
                ["/bin/sh", "-c", _LAUNCH, "launch", str(pid_file)],
                env={**os.environ, "CONTAINER_ID": name},
                stdin=subprocess.DEVNULL,
            )

    def living(self) -> Iterator[str]:
        """List the ids whose first process lives."""
        for name in self.container_ids:
            with contextlib.suppress(OSError, ValueError):
                environ = Path(f"/proc/{int(self._pid_file(name).read_text())}/environ").read_bytes()
                if f"CONTAINER_ID={name}".encode() in environ.split(b"\0"):
                    yield name

    def page(self, name: str) -> dict[str, Any]:
        """Write one page."""
        if name == "info":
            return documents.info(f"127.0.0.1:{self.port}")
        if name == "apps":
            return documents.applications()
        finished = self._finished()
        return documents.containers(
            [
                (
                    one,
                    {
                        "state": "DONE" if one in finished else "RUNNING",
                        "memory_mib": MEMORY_MIB,
                        "vcores": VCORES,
                    },
                )
                for one in self.living()
            ]
        )

    def serve(self) -> None:
        """Answer until the end."""
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(stand_in.page(self.path.partition("?")[0].rpartition("/")[2])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler) as server:
            print(f"node manager {os.getpid()}", flush=True)
            server.serve_forever()

    def _pid_file(self, name: str) -> Path:
        application = "application_" + "_".join(name.split("_")[1:3])
        return self.folder / "local" / "nmPrivate" / application / name / f"{name}.pid"

    def _finished(self) -> set[str]:
        try:
            return set((self.folder / FINISHED_FILE).read_text().split())
        except OSError:
            return set()


def main(arguments: Sequence[str]) -> None:
    """Run until SIGTERM."""

    def stop(*_: object) -> None:
        print("asked to stop", flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a task
    stand_in = StandIn(Path(arguments[0]), int(arguments[1]), arguments[2:])
    stand_in.launch()
    stand_in.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
