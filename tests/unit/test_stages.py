# SPDX-License-Identifier: Apache-2.0
"""The end of a whole run names each test that failed, and why, in a line each."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

_SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "stages.py"

_REPORT = """<testsuites><testsuite tests="3" failures="1" errors="1" skipped="0">
<testcase classname="tests.lab.test_a" name="test_works[3.5.0]" time="1"/>
<testcase classname="tests.lab.test_a" name="test_fails" time="1">
  <failure message="AssertionError: 3 sold twice&#10;assert 3 == 0">a long story</failure></testcase>
<testcase classname="tests.lab.test_b" name="test_breaks" time="1"><error message="LabError: no Go">b</error></testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def stages() -> ModuleType:
    """Load the script, which is in no package."""
    spec = importlib.util.spec_from_file_location("stages", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stages"] = module
    spec.loader.exec_module(module)
    return module


def test_each_test_that_failed_is_named_with_the_first_line_of_the_reason(stages: ModuleType) -> None:
    suite = ElementTree.fromstring(_REPORT).find("testsuite")  # noqa: S314 - ours
    assert stages.failures_of(suite) == [
        "tests.lab.test_a::test_fails\n    failure: AssertionError: 3 sold twice",
        "tests.lab.test_b::test_breaks\n    error: LabError: no Go",
    ]


def test_the_summary_ends_with_what_failed_and_with_the_counts(
    stages: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    stages._print_summary(
        [stages.Stage("lab-test", 2, 3.0, {"failed": 1, "passed": 2}, ["tests.x::y\n    failure: z"])]
    )
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "tests.x::y",
        "    failure: z",
        "=== 1 failed, 2 passed in 3.00s ===",
    ]
