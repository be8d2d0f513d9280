# SPDX-License-Identifier: Apache-2.0
"""Keep the rules of the version 1 device controller: a list of what is allowed, changed by two files beside it.

Rules kept: a new group has its parent's list; `a` allows, or denies, everything; a rule that is denied takes its rights
out of the exact same device only; one that is allowed adds to it. Source: security/device_cgroup.c (Linux 6.x).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LIST: Final = "devices.list"
EVERYTHING: Final = "a *:* rwm"


def inherit(directory: Path) -> None:
    """Give a new group its parent's list."""
    parent = directory.parent / LIST
    if parent.exists():
        (directory / LIST).write_text(parent.read_text())


def allow(directory: Path, rule: str) -> None:
    """Take a rule as `devices.allow` does."""
    present = _rules(directory)
    if rule.startswith("a"):
        present = {"a *:*": "rwm"}
    elif "a *:*" not in present:
        device, _, rights = rule.rpartition(" ")
        present[device] = _sorted(set(present.get(device, "")) | set(rights))
    _write(directory, present)


def deny(directory: Path, rule: str) -> None:
    """Take a rule as `devices.deny` does."""
    present = _rules(directory)
    if rule.startswith("a"):
        present = {}
    else:
        device, _, rights = rule.rpartition(" ")
        left = _sorted(set(present.pop(device, "")) - set(rights))
        present |= {device: left} if left else {}
    _write(directory, present)


def _rules(directory: Path) -> dict[str, str]:
    lines = (line.rpartition(" ") for line in (directory / LIST).read_text().splitlines())
    return {device: rights for device, _, rights in lines}


def _write(directory: Path, rules: dict[str, str]) -> None:
    (directory / LIST).write_text("".join(f"{device} {rights}\n" for device, rights in rules.items()))


def _sorted(rights: set[str]) -> str:
    return "".join(one for one in "rwm" if one in rights)
