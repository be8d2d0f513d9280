# SPDX-License-Identifier: Apache-2.0
"""Run make targets one after another, all of them even when one fails, and print one summary.

What failed is said again at the very end, each test with the line that says why: a log of a whole run is long.
Usage: `python .ci/stages.py check unit model contract lab-test`. Exit code 0 only if every target succeeded. Counts
come from the JUnit reports that the targets write to build/reports. Standard library only.
"""

from __future__ import annotations

import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_REPORTS = _ROOT / "build" / "reports"
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Stage:
    """Hold how one target ended; `counts` and `failures` are empty for a target without tests."""

    name: str
    code: int
    seconds: float
    counts: dict[str, int]
    failures: list[str]


def main(names: list[str]) -> int:
    """Run the targets and print the summary."""
    stages = [_run(name) for name in names]
    _print_summary(stages)
    return 0 if all(stage.code == 0 for stage in stages) else 1


def _run(name: str) -> Stage:
    report = _REPORTS / f"{name.removesuffix('-test')}.xml"
    report.unlink(missing_ok=True)
    print(f"\n===== {name} =====", flush=True)
    started = time.monotonic()
    code = subprocess.run(["make", name], cwd=_ROOT, check=False).returncode  # noqa: S603, S607
    seconds = time.monotonic() - started
    suite = _suite(report)
    if suite is None:
        return Stage(name, code, seconds, {}, [])
    return Stage(name, code, seconds, _counts(suite), failures_of(suite))


def _suite(report: Path) -> ElementTree.Element | None:
    """Read what a target reported; None for one without tests, or one that was killed while it wrote."""
    if not report.exists():
        return None
    try:
        return ElementTree.parse(report).getroot().find("testsuite")  # noqa: S314  (we wrote it)
    except ElementTree.ParseError:
        return None


def _counts(suite: ElementTree.Element) -> dict[str, int]:
    failed, errors, skipped = (int(suite.get(key, "0")) for key in ("failures", "errors", "skipped"))
    passed = int(suite.get("tests", "0")) - failed - errors - skipped
    return {"failed": failed, "passed": passed, "skipped": skipped, "errors": errors}


def failures_of(suite: ElementTree.Element) -> list[str]:
    """Say for each test that failed which one it is, and the first line of why."""
    found = []
    for case in suite.iter("testcase"):
        for outcome in (*case.iter("failure"), *case.iter("error")):
            reason = (outcome.get("message") or "no reason given").splitlines()[0][:_REASON_CHARACTERS]
            found.append(f"{case.get('classname')}::{case.get('name')}\n    {outcome.tag}: {reason}")
    return found


def _print_summary(stages: list[Stage]) -> None:
    print("\n===== summary =====")
    for stage in stages:
        result = "ok" if stage.code == 0 else f"FAILED (exit {stage.code})"
        print(f"{stage.name:<10} {result:<18} {_words(stage.counts) or '-':<40} {stage.seconds:7.1f}s")
    total: dict[str, int] = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
    for stage in stages:
        for key, number in stage.counts.items():
            total[key] += number
    for failure in (failure for stage in stages for failure in stage.failures):
        print(failure)
    seconds = sum(stage.seconds for stage in stages)
    print(f"=== {_words(total) or 'no tests ran'} in {seconds:.2f}s ===", flush=True)


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {key}" for key, number in counts.items() if number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
