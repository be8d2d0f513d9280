# SPDX-License-Identifier: Apache-2.0
"""Test the node side on cgroup version 2 with its controllers: each test of `tests/guest`, in a virtual machine.

The machine runs once for all of them, because starting it is what takes long.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lab.processes.certificates import make_certificate
from lab.processes.progress import Progress
from lab.vm.machine import Verdict, run_tests
from tests.guest.carried import CERTIFICATE, KEY

_FOLDER = Path(__file__).resolve().parents[2] / "guest"
DEADLINE_SECONDS = 600.0
"""A run takes about a tenth of it on an idle machine."""


def names_in_the_guest() -> list[str]:
    """List the functions that are tests there, without importing them: they are for the machine."""
    return [
        node.name
        for path in sorted(_FOLDER.glob("test_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Run the machine."""
    carried = dict(zip((str(CERTIFICATE), str(KEY)), make_certificate(tmp_path_factory.mktemp("tls")), strict=True))
    arguments = ["tests/guest", "-q", "-rA", "-W", "error", "-o", "faulthandler_timeout=60", "--tb=short"]
    return run_tests(arguments, timeout_seconds=DEADLINE_SECONDS, progress=Progress(), carried=carried)


@pytest.mark.timeout(DEADLINE_SECONDS + 120)
@pytest.mark.parametrize("name", names_in_the_guest())
def test_holds_on_version_2(verdicts: dict[str, Verdict], name: str) -> None:
    found = {case: verdict for case, verdict in verdicts.items() if case == name or case.startswith(f"{name}[")}
    assert found, f"the machine did not run {name}, but {sorted(verdicts)}"
    assert {case: verdict.problem for case, verdict in found.items()} == dict.fromkeys(found, "")
