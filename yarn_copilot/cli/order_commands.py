# SPDX-License-Identifier: Apache-2.0
"""Define the commands that write orders for nodes: drain, pause, resume, cap, fix, release.

They use the caller's own kubeconfig, so whoever may patch Nodes may give orders; the controller's API only reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from yarn_copilot.cli.sentences import sentences

Names = Annotated[list[str] | None, typer.Argument(metavar="NODE", help="Names of Kubernetes nodes.")]
SelectorOption = Annotated[
    str | None, typer.Option("--selector", "-l", metavar="LABELS", help="Choose nodes by labels instead: key=value,...")
]
KubeconfigOption = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Your kubeconfig; unset: as kubectl finds it.")
]
ContextOption = Annotated[str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for people; shown in Events, explain and the annotation.")
]
ForOption = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="End the order by itself after 30m, 2h, 1d, ...")
]
UrlOption = Annotated[
    str, typer.Option("--url", envvar="YARN_COPILOT_URL", help="Where the controller serves its API.", metavar="URL")
]
_URL = "http://127.0.0.1:8080"


def drain(  # noqa: PLR0913  # each is an option of the command line
    names: Names = None,
    selector: SelectorOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the order back: the node gets capacity again.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until no container is left, or the deadline.")] = False,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="DURATION", help="Wait for containers at most so long: 30m, 2h.")
    ] = None,
    reason: ReasonOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    url: UrlOption = _URL,
) -> None:
    """Take YARN off nodes: capacity goes to the floor, running containers may end, nothing is killed.

    The order is the annotation yarn-copilot/drain, written with your kubeconfig. It stays until --undo. Containers no
    larger than the floor may still start; for a node that has to stay empty, stop its NodeManager when it is drained.
    Exit code 0 when drained (or, without --wait, ordered), 4 when the deadline is over and containers are left.

    \b
    Examples:
      yarn-copilot drain worker-17 --wait --deadline 2h --reason "new disk"
      yarn-copilot drain --selector rack=r7
      yarn-copilot drain worker-17 --undo
    """
    with sentences():
        from yarn_copilot.cli import ordering

        caller = ordering.Caller.of(names, selector, kubeconfig, context, os.environ)
        code = ordering.drain(caller, undo=undo, waits_at=url if wait else None, deadline=deadline, reason=reason)
        raise typer.Exit(code)


def pause(
    names: Names = None,
    selector: SelectorOption = None,
    duration: ForOption = None,
    reason: ReasonOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Leave nodes alone: nothing is written for them, neither to the Node nor to a ResourceManager.

    What would be written is shown by explain and `nodes --planned`. Capacity and claim stay as they are.

    \b
    Examples:
      yarn-copilot pause worker-17 --for 2h --reason "looking at something"
      yarn-copilot pause --selector rack=r7
    """
    with sentences():
        from yarn_copilot.cli import ordering

        ordering.pause(ordering.Caller.of(names, selector, kubeconfig, context, os.environ), duration, reason)


def resume(
    names: Names = None,
    selector: SelectorOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """End a pause.

    \b
    Example:
      yarn-copilot resume worker-17
    """
    with sentences():
        from yarn_copilot.cli import ordering

        ordering.resume(ordering.Caller.of(names, selector, kubeconfig, context, os.environ))


Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="NODE|cpu=CORES,memory=BYTES", help="Nodes, and amounts: cpu=4,memory=8Gi."),
]
ClearOption = Annotated[bool, typer.Option("--clear", help="Take the order back.")]


def cap(
    arguments: Arguments = None,
    selector: SelectorOption = None,
    clear: ClearOption = False,
    duration: ForOption = None,
    reason: ReasonOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Limit what YARN gets of nodes, all NodeManagers of a node together. Use above the limit ends with its containers.

    \b
    Examples:
      yarn-copilot cap worker-17 cpu=4,memory=8Gi
      yarn-copilot cap --selector rack=r7 memory=64Gi --for 12h
      yarn-copilot cap worker-17 --clear
    """
    with sentences():
        from yarn_copilot.cli import ordering

        nodes, amounts = ordering.split_amounts(arguments or [])
        caller = ordering.Caller.of(nodes, selector, kubeconfig, context, os.environ)
        ordering.cap(caller, amounts, clear=clear, duration=duration, reason=reason)


def fix(
    arguments: Arguments = None,
    selector: SelectorOption = None,
    clear: ClearOption = False,
    duration: ForOption = None,
    reason: ReasonOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Give YARN exactly so much of nodes, whatever weights and demand say, but never more than is there.

    All rules of safety hold: where Koordinator or pods leave less, YARN gets less (reason FixExceedsOrigin).

    \b
    Examples:
      yarn-copilot fix worker-17 cpu=8,memory=32Gi
      yarn-copilot fix worker-17 --clear
    """
    with sentences():
        from yarn_copilot.cli import ordering

        nodes, amounts = ordering.split_amounts(arguments or [])
        caller = ordering.Caller.of(nodes, selector, kubeconfig, context, os.environ)
        ordering.fix(caller, amounts, clear=clear, duration=duration, reason=reason)


def release(  # noqa: PLR0913  # each is an option of the command line
    names: Names = None,
    all_nodes: Annotated[bool, typer.Option("--all", help="Every node that carries anything of ours.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="DURATION", help="Wait for containers at most so long.")
    ] = None,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="No controller runs any more (where the Lease cannot tell).")
    ] = False,
    reason: ReasonOption = "",
    lease: Annotated[str, typer.Option("--lease", metavar="NAMESPACE/NAME", help="The controller's Lease.")] = (
        "koordinator-system/yarn-copilot"
    ),
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    url: UrlOption = _URL,
) -> None:
    """Leave nodes for good: drain them, give capacity back to the floor, remove our entry and our annotations.

    Waits until the controller has given everything back. While a controller runs, the order itself stays on the node
    and keeps it from being taken up again; it goes with the NodeManager, or when you stop the controller and run the
    same command again. Exit code 0 when done, 4 when something is left after the deadline.

    \b
    Examples:
      yarn-copilot release worker-17
      yarn-copilot release --all --yes      then stop the controller, then the same again
    """
    with sentences():
        from yarn_copilot.cli import ordering

        caller = ordering.Caller.of(names, None, kubeconfig, context, os.environ)
        wish = ordering.ReleaseWish(
            all_nodes=all_nodes, yes=yes, deadline=deadline, stopped=stopped, reason=reason, lease=lease, url=url
        )
        raise typer.Exit(ordering.release(caller, wish))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (drain, pause, resume, cap, fix, release):
        app.command()(command)
