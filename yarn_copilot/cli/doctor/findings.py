# SPDX-License-Identifier: Apache-2.0
"""Say what a check found: what, where, why it matters, how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EXIT_FINE: Final = 0
EXIT_ERRORS: Final = 1
EXIT_WARNINGS: Final = 3
"""Exit code when there are warnings and no errors; 2 belongs to wrong command lines and settings files."""


class Severity(StrEnum):
    """Order findings: ok (checked, well), note (could not be checked, or good to know), warning, error."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Check(StrEnum):
    """Name what is checked; the names are part of the JSON output."""

    CONFIGURATION = "hadoop-configuration"
    REACHABLE = "resourcemanager-reachable"
    PORT = "resourcemanager-port"
    AUTHENTICATION = "authentication"
    ADMIN_ACL = "admin-acl"
    VERSION = "version"
    TRANSPORT = "transport"
    CLOCK = "clock"
    CALCULATOR = "resource-calculator"
    MINIMUM = "minimum-allocation"
    REGISTERED = "registered-capacity"
    DYNAMIC_RESOURCES = "dynamic-resources"
    NAMES = "nodemanager-names"
    MATCHING = "nodemanager-matching"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Hold one outcome; `why` and `fix` are empty where all is well.

    Attributes:
        check: what was checked.
        severity: how bad it is.
        cluster: YARN cluster id; empty for what concerns no single one.
        where: file, address, node or key.
        found: what was found there.
        why: what goes wrong because of it.
        fix: what to do.
    """

    check: Check
    severity: Severity
    cluster: str = ""
    where: str = ""
    found: str
    why: str = ""
    fix: str = ""


def exit_code(findings: Iterable[Finding]) -> int:
    """Give 1 with errors, 3 with warnings only, else 0."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return EXIT_ERRORS
    return EXIT_WARNINGS if Severity.WARNING in severities else EXIT_FINE
