# SPDX-License-Identifier: Apache-2.0
"""Run the demo alone: `python -m lab.demo`, the same as `python -m lab demo`."""

from __future__ import annotations

import sys

import typer

from lab.demo.command import demo
from lab.errors import LabError

if __name__ == "__main__":
    try:
        typer.run(demo)
    except LabError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
