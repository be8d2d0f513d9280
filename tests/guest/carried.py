# SPDX-License-Identifier: Apache-2.0
"""Name the files that are put into the virtual machine: there is no program in it that makes certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CERTIFICATE: Final = Path("/carried/tls.crt")
"""For 127.0.0.1, its own authority."""
KEY: Final = Path("/carried/tls.key")
