# SPDX-License-Identifier: Apache-2.0
"""Check a settings file and show the defaults: the commands `config check` and `config show-defaults`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from yarn_copilot.cli.tables import Table, print_table
from yarn_copilot.config.fields import defaults_text, render_value, setting_fields, value_at
from yarn_copilot.config.loading import environment_name, load_settings, settings_hash
from yarn_copilot.config.settings import Settings


def check(path: Path, environ: Mapping[str, str], *, output: str) -> None:
    """Load a file as `run` would and print the values in force with where each comes from.

    Raises:
        ConfigError: the file is wrong; one line for each problem.
    """
    settings = load_settings(path, environ)
    if output == "json":
        print(json.dumps({"ok": True, "hash": settings_hash(settings), "settings": settings.model_dump(mode="json")}))
        return
    print(f"{path}: OK, hash {settings_hash(settings)}")
    rows = [
        (field.path, render_value(value_at(settings, field.path)), _source(settings, field.path, environ))
        for field in setting_fields().values()
    ]
    print_table(Table(("key", "value", "from"), rows), empty="")


def _source(settings: Settings, path: str, environ: Mapping[str, str]) -> str:
    if environment_name(path) in environ:
        return environment_name(path)
    return "default" if value_at(settings, path) == value_at(Settings(), path) else "file"


def show_defaults() -> None:
    """Print a complete settings file with every key at its default, described."""
    print(defaults_text())
