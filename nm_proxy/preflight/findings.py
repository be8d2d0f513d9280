# SPDX-License-Identifier: Apache-2.0
"""Say what a check found: where exactly, what is there, what is expected, how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nm_proxy.exit_codes import ExitCode


class Severity(StrEnum):
    """Order findings: ok (checked, well), warning (works, but look at it), error (would not work)."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Hold one outcome.

    Attributes:
        code: the kind, which is also the exit code of an error.
        severity: how bad it is.
        where: exact file, directory, key or name.
        found: what is there.
        expected: what should be; empty where all is well.
        fix: what to do; empty where all is well.
    """

    code: ExitCode
    severity: Severity
    where: str
    found: str
    expected: str = ""
    fix: str = ""


def well(code: ExitCode, where: str, found: str) -> Finding:
    """Make a finding of something that is as it should be."""
    return Finding(code=code, severity=Severity.OK, where=where, found=found)


def doubtful(code: ExitCode, where: str, found: str, expected: str, fix: str) -> Finding:
    """Make a finding of something that works but should be looked at."""
    return Finding(code=code, severity=Severity.WARNING, where=where, found=found, expected=expected, fix=fix)


def wrong(code: ExitCode, where: str, found: str, expected: str, fix: str) -> Finding:
    """Make a finding of something that would not work."""
    return Finding(code=code, severity=Severity.ERROR, where=where, found=found, expected=expected, fix=fix)


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    """Give the kind of the first error, in the order of the checks; warnings do not count."""
    return next((one.code for one in findings if one.severity is Severity.ERROR), ExitCode.OK)
