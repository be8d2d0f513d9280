# SPDX-License-Identifier: Apache-2.0
"""Write the sections of a reference page from a settings model; both programs' pages come from here."""

from __future__ import annotations

from typing import Final

from yarn_copilot.config.fields import SettingField, render_value, section_models, setting_fields
from yarn_copilot.config.loading import S, Schema

GENERATED: Final = "<!-- Written by `make docs` from the code; edit the code, not this page. -->\n"
"""Begin every generated page with this."""


def section_lines(schema: Schema[S]) -> list[str]:
    """Describe every key, section by section, in the order of the models."""
    lines: list[str] = []
    for section, model in section_models(schema.model).items():
        fields = [field for path, field in setting_fields(schema.model).items() if path.rpartition(".")[0] == section]
        if fields:
            lines += ["", f"## `{section}`", "", _first_sentence(model.__doc__), ""]
            for field in fields:
                lines += _field_lines(field, schema.variable(field.path))
    return lines


def _field_lines(field: SettingField, variable: str) -> list[str]:
    when = "at once" if field.reloadable else "after a restart"
    return [
        f"### `{field.path}`",
        "",
        field.description,
        "",
        f"- Allowed: {field.allowed}.",
        f"- Default: `{render_value(field.default)}`. A change takes effect {when}.",
        f"- Variable: `{variable}`.",
        "",
    ]


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
