# SPDX-License-Identifier: Apache-2.0
"""Compare settings and take over only what may change while the program runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from yarn_copilot.config.fields import render_value, setting_fields, value_at
from yarn_copilot.config.settings import Section

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFields:
    """Name changed fields by dotted path, in the order of the file: those that apply at once, and the others."""

    reloadable: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.reloadable or self.needs_restart)


def changed_fields(old: S, new: S) -> ChangedFields:
    """List the fields that differ."""
    fields = setting_fields(type(old))
    changed = [path for path in fields if value_at(old, path) != value_at(new, path)]
    fixed = {path for path in changed if not fields[path].reloadable} | old.fixed_changes(new)
    return ChangedFields(
        reloadable=tuple(path for path in changed if path not in fixed),
        needs_restart=tuple(path for path in changed if path in fixed),
    )


def with_reloadable(running: S, new: S) -> S:
    """Take the reloadable fields of `new` into `running`; all others stay as they were at the start."""
    content: dict[str, Any] = running.model_dump()
    for path in changed_fields(running, new).reloadable:
        *sections, key = path.split(".")
        place = content
        for section in sections:
            place = place[section]
        place[key] = value_at(new, path)
    return type(running).model_validate(content)


def describe_changes(old: Section, new: Section, paths: tuple[str, ...]) -> str:
    """Write changes as `key: old -> new`, comma separated."""
    return ", ".join(
        f"{path}: {render_value(value_at(old, path))} -> {render_value(value_at(new, path))}" for path in paths
    )
