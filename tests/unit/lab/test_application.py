# SPDX-License-Identifier: Apache-2.0
"""Which ends of containers were against their application's will, and how the end of its process is seen."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.errors import LabError
from lab.hadoop.application import EXIT_ABORTED, EXIT_PREEMPTED, Application, Container


@pytest.mark.parametrize(
    ("exit_status", "diagnostics", "taken_away"),
    [
        pytest.param(None, "", False, id="lives"),
        pytest.param(0, "", False, id="ended by itself"),
        pytest.param(137, "Killed by external signal", True, id="killed on the node"),
        pytest.param(EXIT_PREEMPTED, "Container preempted by scheduler", True, id="preempted"),
        pytest.param(EXIT_ABORTED, "Container released by application", False, id="given back"),
        pytest.param(EXIT_ABORTED, "Container of a completed application", False, id="application finished"),
        pytest.param(EXIT_ABORTED, "Container released on a *lost* node", True, id="lost with its node"),
        pytest.param(EXIT_ABORTED, "", True, id="for no reason given"),
    ],
)
def test_tells_what_was_taken_away(exit_status: int | None, diagnostics: str, *, taken_away: bool) -> None:
    container = Container(
        id="container_1_0001_01_000002", ask=1, queue="root.default", node="n:1", memory_mib=256, vcores=1,
        exit_status=exit_status, diagnostics=diagnostics,
    )  # fmt: skip
    assert container.was_taken_away is taken_away


class _Process:
    """Be a process that is seen alive so many times, and is dead from then on."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self.child = SimpleNamespace(stdin=io.BytesIO(), stdout=None)

    @property
    def is_running(self) -> bool:
        self._looks -= 1
        return self._looks >= 0

    def tail(self, _lines: int) -> str:
        return "its last words"


def _application(looks: int) -> Application:
    process = _Process(looks)
    yarn = SimpleNamespace(
        java=SimpleNamespace(command=lambda *_, **__: ["java"]), conf_dir=Path("/conf"), folder=Path("/hadoop")
    )
    group = SimpleNamespace(add=lambda _: process, state=SimpleNamespace(log_path=Path))
    return Application(
        group,  # type: ignore[arg-type]  # stand-ins
        yarn,  # type: ignore[arg-type]
        name="application-1", classes=Path("/classes"), user="root", am_memory_mib=None, am_vcores=1,
    )  # fmt: skip


@pytest.mark.parametrize("looks", range(6))
def test_an_application_has_stopped_whenever_its_process_ends(looks: int) -> None:
    _application(looks).stop(timeout_seconds=60)


def test_what_an_ended_process_will_never_do_is_not_waited_for() -> None:
    with pytest.raises(LabError, match=r"application-1: it runs: its process has ended; .*\n?.*its last words"):
        _application(2).wait_for(lambda: False, what="it runs", timeout_seconds=60)
