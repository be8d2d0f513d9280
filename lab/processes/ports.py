# SPDX-License-Identifier: Apache-2.0
"""Hand out TCP ports that stay free for their owner, also while its server is being restarted.

Ports come from below the kernel's range for outgoing connections, so that no connection takes one while a server is
down. A port is claimed by binding an abstract unix socket named after it: labs of other processes see the claim, and
it vanishes with the process.
"""

from __future__ import annotations

import random
import socket
from typing import Final

from lab.errors import LabError

_FIRST: Final = 11_000
_LAST: Final = 31_999
_ATTEMPTS: Final = 2_000


class PortClaims:
    """Hold claims on ports until closed."""

    def __init__(self) -> None:
        self._claims: list[socket.socket] = []
        self._random = random.SystemRandom()

    def take(self) -> int:
        """Claim one port that nobody listens on, on any loopback address.

        Raises:
            LabError: no free port was found.
        """
        for _ in range(_ATTEMPTS):
            port = self._random.randint(_FIRST, _LAST)
            claim = _claim(port)
            if claim is None:
                continue
            self._claims.append(claim)
            if _is_free(port):
                return port
        raise LabError(f"found no free TCP port between {_FIRST} and {_LAST}")

    def close(self) -> None:
        """Give all ports back."""
        while self._claims:
            self._claims.pop().close()


def _claim(port: int) -> socket.socket | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0yarn-copilot-lab-port-{port}")
    except OSError:
        claim.close()
        return None
    return claim


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
