# SPDX-License-Identifier: Apache-2.0
"""Know the version of both programs, which come in one package."""

from __future__ import annotations

from importlib import metadata


def program_version() -> str:
    """Give the installed version; "unknown" where the package runs from a tree without being installed."""
    try:
        return metadata.version("yarn-copilot")
    except metadata.PackageNotFoundError:
        return "unknown"
