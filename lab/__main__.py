# SPDX-License-Identifier: Apache-2.0
"""Be the lab's command line: `python -m lab prepare|up|status|down|demo`.

Each command is one function below. Commands that live in a package of their own, as the demo in `lab/demo`, are
added to `app` at the end of this file.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from lab import running
from lab.cluster import Lab, prepare
from lab.demo.command import demo
from lab.errors import LabError
from lab.hadoop.jars import VERSIONS
from lab.hadoop.options import YarnOptions
from lab.processes.progress import Progress
from lab.processes.state import running_labs

app = typer.Typer(help="Run a real Kubernetes control plane and YARN cluster on loopback.", no_args_is_help=True)
_POLL_SECONDS: Final = 0.5
_PIPED_WIDTH: Final = 250

HadoopVersion = Annotated[str, typer.Option("--hadoop", help=f"Hadoop version: {', '.join(VERSIONS)}.")]
NodeManagers = Annotated[int, typer.Option("--node-managers", min=0, max=200, help="Number of NodeManagers.")]


@app.command("prepare")
def prepare_command(
    all_versions: Annotated[bool, typer.Option("--all-versions", help="Fetch every tried Hadoop version.")] = False,
    hadoop: HadoopVersion = VERSIONS[-1],
) -> None:
    """Build and fetch everything that the lab needs."""
    prepare(hadoop_versions=VERSIONS if all_versions else (hadoop,), progress=Progress())


@app.command()
def up(
    hadoop: HadoopVersion = VERSIONS[-1],
    node_managers: NodeManagers = 3,
    floor_memory_mib: Annotated[int, typer.Option(min=128, help="Memory a NodeManager registers with.")] = 1024,
    state_dir: Annotated[Path | None, typer.Option(help="Folder to use and keep.")] = None,
    detach: Annotated[bool, typer.Option(help="Return when the lab is up; stop it with `down`.")] = False,
    remove_state: Annotated[bool, typer.Option(help="Remove the folder with the lab.", hidden=True)] = False,
    outlive_parent: Annotated[bool, typer.Option(help="Go on without a parent.", hidden=True)] = False,
) -> None:
    """Start a lab and print how to reach it; it ends at Ctrl-C, SIGTERM, or with its parent process."""
    if detach:
        options = ["--hadoop", hadoop, "--node-managers", str(node_managers)]
        record = running.start_detached([*options, "--floor-memory-mib", str(floor_memory_mib)], state_dir)
        typer.echo("\n".join(running.exports(record)))
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    parent = None if outlive_parent else os.getppid()
    lab = Lab(
        hadoop_version=hadoop,
        node_managers=node_managers,
        state_dir=state_dir,
        remove_state=True if remove_state else None,
        yarn_options=YarnOptions(floor_memory_mib=floor_memory_mib),
    )
    with lab:
        typer.echo("\n".join([*running.exports(lab.describe()), f"# state folder: {lab.state_dir}"]))
        sys.stdout.flush()
        typer.echo(f"ready in {lab.startup_seconds['all']} s; Ctrl-C stops everything", err=True)
        while parent is None or os.getppid() == parent:
            time.sleep(_POLL_SECONDS)


@app.command()
def status() -> None:
    """List the labs that run."""
    labs = running_labs()
    if not labs:
        typer.echo("no lab is running")
        return
    table = Table("pid", "state folder", "API server", "ResourceManager", "NodeManagers")
    for record in labs:
        table.add_row(
            str(record["pid"]),
            record["state_dir"],
            record.get("kubernetes_url", "-"),
            record.get("resource_manager_rest", "-"),
            str(len(record.get("node_managers", []))),
        )
    console = Console()
    if not console.is_terminal:
        console.width = _PIPED_WIDTH  # whole paths for whoever reads the pipe
    console.print(table)


@app.command()
def down(
    pid: Annotated[int | None, typer.Argument(help="Pid of the lab as `status` shows it; not needed for one.")] = None,
    all_labs: Annotated[bool, typer.Option("--all", help="Stop every lab of this user.")] = False,
) -> None:
    """Stop one lab or all, and wait until nothing is left."""
    labs = [record for record in running_labs() if pid in {None, record["pid"]}]
    if not labs:
        raise LabError("no lab is running" if pid is None else f"no lab has pid {pid}; see `python -m lab status`")
    if len(labs) > 1 and not all_labs:
        raise LabError(f"{len(labs)} labs are running: name a pid, or use --all")
    for record in labs:
        running.stop_lab(record)
        typer.echo(f"stopped the lab in {record['state_dir']}")


app.command("demo")(demo)


def main() -> int:
    """Run the command line; errors of the lab become one message and exit code 1."""
    try:
        code = app(standalone_mode=False)  # without the standalone mode, `typer.Exit(1)` is what it returns
    except LabError as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    except typer.TyperException as error:
        typer.echo(f"error: {error}", err=True)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    raise SystemExit(main())
