# SPDX-License-Identifier: Apache-2.0
"""Load, check and show the node side's settings file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nm_proxy.settings import SCHEMA, NodeSettings
from yarn_copilot.config.fields import defaults_text
from yarn_copilot.config.loading import parse_as, read_file, settings_hash


def load(path: Path | None, environ: Mapping[str, str]) -> NodeSettings:
    """Load a settings file, or the defaults, with the environment's overrides.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    return parse_as(SCHEMA, b"" if path is None else read_file(path), str(path or "defaults"), environ)


def show_checked(path: Path, environ: Mapping[str, str]) -> None:
    """Say that a file is right.

    Raises:
        ConfigError: it is not; one line for each problem.
    """
    print(f"{path}: OK, hash {settings_hash(load(path, environ))}")


def show_defaults() -> None:
    """Print a complete settings file."""
    print(defaults_text(NodeSettings))
