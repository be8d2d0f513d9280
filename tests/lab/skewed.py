# SPDX-License-Identifier: Apache-2.0
"""Run a piece of code under a clock that is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_ahead(code: str, *arguments: str, krb5_conf: Path) -> str:
    """Run code with a clock ten minutes ahead and give all that it printed.

    Args:
        code: what `python -c` runs.
        arguments: what it finds in `sys.argv`.
        krb5_conf: Kerberos' configuration.
    """
    result = subprocess.run(
        ["faketime", "-f", "+10m", sys.executable, "-c", code, *arguments],
        env={**os.environ, "KRB5_CONFIG": str(krb5_conf)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return result.stdout + result.stderr
