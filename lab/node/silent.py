# SPDX-License-Identifier: Apache-2.0
"""Give an address on which surely nobody answers, for a stand-in of a NodeManager that has no web pages."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def silent_url() -> Iterator[str]:
    """Hold a port of this machine without listening, so that nobody else gets it and every call is refused."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}"
