# SPDX-License-Identifier: Apache-2.0
"""Be the command line `yarn-copilot`: parse, call, turn errors into sentences and exit codes.

Commands import what they need when they run, so that `--help` and the reading commands start fast.
Exit codes: 0 done, 1 failed, 2 wrong command line or configuration; `doctor` also 3, warnings; `drain --wait` and
`release` also 4, not done in time.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from yarn_copilot.cli import order_commands
from yarn_copilot.cli.environment import with_hadoop_variables
from yarn_copilot.cli.sentences import sentences

app = typer.Typer(
    name="yarn-copilot",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Share a node's idle capacity between Kubernetes (Koordinator) and Apache Hadoop YARN.

The controller (run) lets the capacity of YARN NodeManagers follow what Koordinator computes as idle, and tells
Koordinator what YARN holds. Other commands read a running controller, check a configuration file, or write orders
for nodes (drain, pause, cap, fix, release) with your own kubeconfig.

\b
Examples:
  yarn-copilot config show-defaults > config.yaml    start a configuration
  yarn-copilot config check config.yaml              check it
  yarn-copilot doctor --config config.yaml           check Hadoop and Kubernetes with it
  yarn-copilot run --config config.yaml              run the controller
  yarn-copilot status                                is it ready, who leads, what answers
  yarn-copilot nodes --problems                      nodes that need a look
  yarn-copilot explain worker-17                     why a node is as it is
  yarn-copilot drain worker-17 --wait                take YARN off a node
""",
)
config_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and explain configuration files.")
app.add_typer(config_app, name="config")


class Output(StrEnum):
    """Choose how a reading command prints."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


UrlOption = Annotated[
    str, typer.Option("--url", envvar="YARN_COPILOT_URL", help="Where the controller serves its API.", metavar="URL")
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, wide (more columns) or json.")]
_URL = "http://127.0.0.1:8080"


@app.command()
def run(
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="YARN_COPILOT_CONFIG", help="Settings file (YAML).", metavar="FILE")
    ],
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve health, metrics and the API here instead; 0 picks a free port."),
    ] = None,
) -> None:
    """Run the controller until SIGTERM or SIGINT.

    Every key of the file can be overridden by a variable YARN_COPILOT_<SECTION>__<KEY>, for example
    YARN_COPILOT_LOG__LEVEL=DEBUG. The file is watched; see docs/configuration.md for what takes effect at once.

    \b
    Examples:
      yarn-copilot run --config /etc/yarn-copilot/config.yaml
      yarn-copilot run --config config.yaml --port 0
    """
    with sentences():
        from yarn_copilot.cli.run import run_controller

        raise typer.Exit(run_controller(config, environ=_environment(port)))


@app.command()
def nodes(
    url: UrlOption = _URL,
    output: OutputOption = Output.TABLE,
    problems: Annotated[bool, typer.Option("--problems", help="Only nodes for which a reason holds.")] = False,
    planned: Annotated[
        bool, typer.Option("--planned", help="What each node has and would get: the report of mode observe.")
    ] = False,
) -> None:
    """List nodes with what each scheduler holds and is offered.

    Amounts are cores/memory; ? is unknown. AGE is the age of origin, Koordinator's figure.

    \b
    Examples:
      yarn-copilot nodes
      yarn-copilot nodes --problems -o wide
      yarn-copilot nodes --planned
      yarn-copilot nodes -o json | jq '.nodes[] | select(.reasons != [])'
    """
    with sentences():
        from yarn_copilot.cli import reading, reporting
        from yarn_copilot.cli.api_client import APIClient

        if planned:
            reporting.print_planned(APIClient(url), output=output)
        else:
            reading.print_nodes(APIClient(url), output=output, problems=problems)


@app.command()
def queues(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """List YARN's queues with their shares, use and waiting work.

    \b
    Examples:
      yarn-copilot queues
      yarn-copilot queues -o json --url http://yarn-copilot.koordinator-system:8080
    """
    with sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_queues(APIClient(url), output=output)


@app.command()
def clusters(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """List the YARN clusters and how their ResourceManagers answer."""
    with sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_clusters(APIClient(url), output=output)


@app.command()
def explain(
    node: Annotated[str, typer.Argument(help="Name of the Kubernetes node.")],
    url: UrlOption = _URL,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain one node in sentences: where its figures come from, what holds it, what happens next.

    \b
    Example:
      yarn-copilot explain worker-17
    """
    with sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_explain(APIClient(url), node, output=output)


@app.command()
def status(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """Show whether the controller is ready, who leads, which configuration is in force and what answers."""
    with sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_status(APIClient(url), output=output)


@app.command()
def doctor(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", envvar="YARN_COPILOT_CONFIG", help="Settings file (YAML).", metavar="FILE"),
    ] = None,
    output: OutputOption = Output.TABLE,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes/--no-kubernetes", help="Compare NodeManagers with pods and Nodes.")
    ] = True,
) -> None:
    """Check Hadoop files, ResourceManagers, NodeManagers and pods before anything is written; changes nothing.

    Each finding says what was found where, why it matters and how to mend it. Exit code 0 when all is well, 3 with
    warnings, 1 with errors, 2 for a wrong settings file or Hadoop folder.

    \b
    Examples:
      yarn-copilot doctor --config config.yaml
      yarn-copilot doctor -c config.yaml -o json | jq '.findings[] | select(.severity == "error")'
    """
    with sentences():
        from yarn_copilot.cli.doctor import command

        raise typer.Exit(
            command.doctor(config, with_hadoop_variables(os.environ), output=output, with_kubernetes=kubernetes)
        )


@app.command()
def version() -> None:
    """Print the version."""
    from yarn_copilot.observability.version import program_version

    print(f"yarn-copilot {program_version()}")


@config_app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Settings file (YAML).")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Check a settings file as `run` would, and print the values in force.

    Exit code 2 and one line for each problem if the file is wrong. Overrides from the environment are included.

    \b
    Example:
      yarn-copilot config check config.yaml
    """
    with sentences():
        from yarn_copilot.cli import configuring

        configuring.check(file, with_hadoop_variables(os.environ), output=output)


@config_app.command("show-defaults")
def show_defaults() -> None:
    """Print a complete settings file with every key at its default, described.

    \b
    Example:
      yarn-copilot config show-defaults > config.yaml
    """
    with sentences():
        from yarn_copilot.cli import configuring

        configuring.show_defaults()


order_commands.add_to(app)


def main() -> None:
    """Run the command line; entry point of the installed script."""
    app()


def _environment(port: int | None) -> dict[str, str]:
    """Let the command line win over the environment, which wins over the file."""
    environ = with_hadoop_variables(os.environ)
    if port is not None:
        environ["YARN_COPILOT_SERVER__PORT"] = str(port)
    return environ


if __name__ == "__main__":
    main()
