# SPDX-License-Identifier: Apache-2.0
"""Name what can go wrong between this program and the NodeManager.

::

    YarnCopilotError
    └── NodeManagerError
        ├── NodeManagerRefusedError     nothing listens: it is down or starting        retryable
        ├── NodeManagerUnreachableError no name, no way, no trust: nobody knows          retryable
        ├── NodeManagerTimeoutError     no whole answer within the deadline            retryable
        ├── NodeManagerAnswerError      an answer, but not the one that was asked for
        │   └── NodeManagerLoginError       it wants to know first who asks
        └── WatchError                  the kernel will not tell about new pid files

No exception of aiohttp and no `OSError` leaves the adapter.
"""

from __future__ import annotations

from typing import ClassVar, Final

from yarn_copilot.errors import YarnCopilotError

REMOTE_TEXT_LIMIT: Final = 256


class NodeManagerError(YarnCopilotError):
    """Say that the NodeManager could not be asked."""


class NodeManagerRefusedError(NodeManagerError):
    """Say that nothing listens at the address."""

    retryable: ClassVar[bool] = True


class NodeManagerUnreachableError(NodeManagerError):
    """Say that no connection came about, and that this tells nothing of whether somebody listens.

    The name is not resolved, the network does not lead there, or the certificate is not trusted.
    """

    retryable: ClassVar[bool] = True


class NodeManagerTimeoutError(NodeManagerError):
    """Say that no whole answer came in time: it hangs, or is very busy."""

    retryable: ClassVar[bool] = True


class NodeManagerAnswerError(NodeManagerError):
    """Say that the answer is refused, too large, or not of the shape that was asked for."""


class NodeManagerLoginError(NodeManagerAnswerError):
    """Say that the pages want a login that was not given; trying again does not help, a setting does."""


class WatchError(NodeManagerError):
    """Say that the kernel does not tell about changes of a directory; looking from time to time still works."""


def cut(text: str) -> str:
    """Shorten text that came from outside."""
    return text if len(text) <= REMOTE_TEXT_LIMIT else text[: REMOTE_TEXT_LIMIT - 1] + "…"
