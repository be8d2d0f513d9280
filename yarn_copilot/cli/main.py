# SPDX-License-Identifier: Apache-2.0
"""Be the command line `yarn-copilot`: parse, call, turn errors into sentences and exit codes.

Commands import what they need when they run, so that `--help` and the reading commands start fast.
Exit codes: 0 done, 1 failed, 2 wrong command line or configuration; `doctor` also 3, warnings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from yarn_copilot.cli.environment import with_hadoop_variables
from yarn_copilot.cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError
from yarn_copilot.errors import ConfigError, YarnCopilotError

app = typer.Typer(
    name="yarn-copilot",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Share a node's idle capacity between Kubernetes (Koordinator) and Apache Hadoop YARN.

The controller (run) lets the capacity of YARN NodeManagers follow what Koordinator computes as idle, and tells
Koordinator what YARN holds. The other commands read a running controller or check a configuration file.

\b
Examples:
  yarn-copilot config show-defaults > config.yaml    start a configuration
  yarn-copilot config check config.yaml              check it
  yarn-copilot doctor --config config.yaml           check Hadoop and Kubernetes with it
  yarn-copilot run --config config.yaml              run the controller
  yarn-copilot status                                is it ready, who leads, what answers
  yarn-copilot nodes --problems                      nodes that need a look
  yarn-copilot explain worker-17                     why a node is as it is
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
    with _sentences():
        from yarn_copilot.cli.run import run_controller

        raise typer.Exit(run_controller(config, environ=_environment(port)))


@app.command()
def nodes(
    url: UrlOption = _URL,
    output: OutputOption = Output.TABLE,
    problems: Annotated[bool, typer.Option("--problems", help="Only nodes for which a reason holds.")] = False,
) -> None:
    """List nodes with what each scheduler holds and is offered.

    Amounts are cores/memory; ? is unknown. AGE is the age of origin, Koordinator's figure.

    \b
    Examples:
      yarn-copilot nodes
      yarn-copilot nodes --problems -o wide
      yarn-copilot nodes -o json | jq '.nodes[] | select(.reasons != [])'
    """
    with _sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_nodes(APIClient(url), output=output, problems=problems)


@app.command()
def queues(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """List YARN's queues with their shares, use and waiting work.

    \b
    Examples:
      yarn-copilot queues
      yarn-copilot queues -o json --url http://yarn-copilot.koordinator-system:8080
    """
    with _sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_queues(APIClient(url), output=output)


@app.command()
def clusters(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """List the YARN clusters and how their ResourceManagers answer."""
    with _sentences():
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
    with _sentences():
        from yarn_copilot.cli import reading
        from yarn_copilot.cli.api_client import APIClient

        reading.print_explain(APIClient(url), node, output=output)


@app.command()
def status(url: UrlOption = _URL, output: OutputOption = Output.TABLE) -> None:
    """Show whether the controller is ready, who leads, which configuration is in force and what answers."""
    with _sentences():
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
    with _sentences():
        from yarn_copilot.cli.doctor import command

        raise typer.Exit(
            command.doctor(config, with_hadoop_variables(os.environ), output=output, with_kubernetes=kubernetes)
        )


@app.command()
def version() -> None:
    """Print the version."""
    from yarn_copilot.cli.about import program_version

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
    with _sentences():
        from yarn_copilot.cli import configuring

        configuring.check(file, with_hadoop_variables(os.environ), output=output)


@config_app.command("show-defaults")
def show_defaults() -> None:
    """Print a complete settings file with every key at its default, described.

    \b
    Example:
      yarn-copilot config show-defaults > config.yaml
    """
    with _sentences():
        from yarn_copilot.cli import configuring

        configuring.show_defaults()


def main() -> None:
    """Run the command line; entry point of the installed script."""
    app()


def _environment(port: int | None) -> dict[str, str]:
    """Let the command line win over the environment, which wins over the file."""
    environ = with_hadoop_variables(os.environ)
    if port is not None:
        environ["YARN_COPILOT_SERVER__PORT"] = str(port)
    return environ


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn our errors into a message on stderr and an exit code; let all others show."""
    try:
        yield
    except ConfigError as error:
        _fail(str(error), EXIT_USAGE)
    except CommandError as error:
        _fail(str(error), EXIT_FAILED)
    except YarnCopilotError as error:
        _fail(f"{type(error).__name__}: {error}", EXIT_FAILED)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has left: that is no failure, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
