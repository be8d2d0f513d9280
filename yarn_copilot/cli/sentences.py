# SPDX-License-Identifier: Apache-2.0
"""Turn our errors into a message on stderr and an exit code, in one place for all commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from yarn_copilot.cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError, UsageError
from yarn_copilot.errors import ConfigError, YarnCopilotError


@contextmanager
def sentences() -> Iterator[None]:
    """Turn our errors into sentences; let all others show."""
    try:
        yield
    except (ConfigError, UsageError) as error:
        _fail(str(error), EXIT_USAGE)
    except CommandError as error:
        _fail(str(error), EXIT_FAILED)
    except YarnCopilotError as error:
        _fail(f"{type(error).__name__}: {error}", EXIT_FAILED)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has left: that is no failure, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(code)
