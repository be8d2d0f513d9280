# SPDX-License-Identifier: Apache-2.0
"""Be the command line `nm-proxy`: parse, call, turn errors into sentences and exit codes (`exit_codes`).

Commands import what they need when they run; `run` replaces itself by init before it imports anything else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from nm_proxy.exit_codes import ExitCode
from yarn_copilot.errors import ConfigError, YarnCopilotError

app = typer.Typer(
    name="nm-proxy",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Run a YARN NodeManager in a pod so that its containers live in Koordinator's best-effort cgroup.

Put `nm-proxy run --` in front of the NodeManager's command. It checks the node, renders the Hadoop configuration,
starts and watches the NodeManager, moves its containers into their cgroups, serves the copilot APIs, and drains on
SIGTERM.

\b
Examples:
  nm-proxy config show-defaults > nm-proxy.yaml          start a settings file
  nm-proxy check --config nm-proxy.yaml                  is this node fit, and if not, why
  nm-proxy render --config nm-proxy.yaml                 what is laid over yarn-site.xml
  nm-proxy run --config nm-proxy.yaml -- yarn nodemanager
""",
)
config_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and explain settings files.")
app.add_typer(config_app, name="config")

DEFAULT_COMMAND = ("yarn", "nodemanager")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", envvar="NM_PROXY_CONFIG", help="Settings file (YAML); none: defaults.", metavar="FILE"
    ),
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(help="What runs the NodeManager; default: yarn nodemanager.", metavar="[-- COMMAND...]"),
]


@app.command()
def run(config: ConfigOption = None, command: CommandArgument = None) -> None:
    """Run the NodeManager until SIGTERM: check, render, then init, supervisor and agent.

    As PID 1 it reaps orphans. A crash of the supervisor costs no container: init starts it again and it takes the
    running NodeManager over. SIGTERM drains within stop.grace_seconds. Exit codes: docs/node.md.

    \b
    Examples:
      nm-proxy run -- yarn nodemanager
      nm-proxy run --config /etc/nm-proxy/config.yaml -- /opt/hadoop/bin/yarn nodemanager
    """
    options = ["--config", str(config)] if config is not None else []
    supervise_command = [sys.executable, "-m", "nm_proxy.cli.supervise", *options, "--", *(command or DEFAULT_COMMAND)]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "nm_proxy.supervisor.init", "--", *supervise_command])  # noqa: S606


@app.command()
def check(
    config: ConfigOption = None,
    command: CommandArgument = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the node: cgroup tree, names, capacity, programs, volumes. Changes nothing.

    Each finding names the exact path, what is expected and how to mend it. The exit code is 0 when only warnings are
    left, else the kind of the first error; docs/node.md has the table.

    \b
    Examples:
      nm-proxy check --config /etc/nm-proxy/config.yaml
      nm-proxy check --json -- /opt/hadoop/bin/yarn nodemanager
    """
    with _sentences():
        from nm_proxy.cli import checking

        raise typer.Exit(
            int(checking.check(config, command or DEFAULT_COMMAND, _environment(), json_output=json_output))
        )


@app.command()
def render(
    config: ConfigOption = None,
    whole: Annotated[bool, typer.Option("--whole", help="Print the whole yarn-site.xml, not only our part.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the directory instead of printing.", metavar="DIR")
    ] = None,
) -> None:
    """Print what is laid over the operator's yarn-site.xml, or write the NodeManager's configuration directory.

    \b
    Examples:
      nm-proxy render
      nm-proxy render --whole
      nm-proxy render --output /run/nm-proxy/hadoop-conf
    """
    with _sentences():
        from nm_proxy.cli import checking

        checking.show_rendering(config, _environment(), whole=whole, output=output)


@app.command()
def agent(config: ConfigOption = None) -> None:
    """Run only the agent, as a sidecar beside a NodeManager that something else starts.

    The pod needs shareProcessNamespace (or hostPID), and the settings node_manager.url and
    node_manager.local_directories.

    \b
    Example:
      nm-proxy agent --config /etc/nm-proxy/config.yaml
    """
    with _sentences():
        from nm_proxy.cli.sidecar import run_agent

        raise typer.Exit(int(run_agent(config, _environment())))


@app.command()
def version() -> None:
    """Print the version."""
    from yarn_copilot.observability.version import program_version

    print(f"nm-proxy {program_version()}")


@config_app.command("check")
def check_config(config: Annotated[Path, typer.Argument(help="Settings file (YAML).")]) -> None:
    """Check a settings file as `run` would; exit code 2 and one line for each problem if it is wrong."""
    with _sentences():
        from nm_proxy.cli import settings_file

        settings_file.show_checked(config, _environment())


@config_app.command("show-defaults")
def show_defaults() -> None:
    """Print a complete settings file with every key at its default, described."""
    from nm_proxy.cli import settings_file

    settings_file.show_defaults()


def main() -> None:
    """Run the command line; entry point of the installed script."""
    app()


def _environment() -> Mapping[str, str]:
    return os.environ


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn our errors into a message on stderr and an exit code; let all others show."""
    try:
        yield
    except ConfigError as error:
        _fail(str(error), ExitCode.CONFIGURATION)
    except YarnCopilotError as error:
        _fail(f"{type(error).__name__}: {error}", ExitCode.FAILED)


def _fail(message: str, code: ExitCode) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(int(code))


if __name__ == "__main__":
    main()
