# SPDX-License-Identifier: Apache-2.0
"""Name what can go wrong between the controller and the program beside a NodeManager.

::

    YarnCopilotError
    └── NodeAgentError
        ├── NodeAgentConnectionError   no answer: refused, reset, TLS, deadline                    retryable
        ├── NodeAgentRefusedError      the token is missing or wrong, no TLS, or kills are off
        ├── NodeAgentAskError          the ask itself is refused; nothing was killed
        └── NodeAgentProtocolError     an answer of another shape, or too large
"""

from __future__ import annotations

from typing import ClassVar

from yarn_copilot.errors import YarnCopilotError


class NodeAgentError(YarnCopilotError):
    """Say that a call did not succeed."""


class NodeAgentConnectionError(NodeAgentError):
    """Say that no whole answer came; whether a kill happened is unknown."""

    retryable: ClassVar[bool] = True


class NodeAgentRefusedError(NodeAgentError):
    """Say that this caller may not kill; nothing was killed."""


class NodeAgentAskError(NodeAgentError):
    """Say that the ask was refused; nothing was killed."""


class NodeAgentProtocolError(NodeAgentError):
    """Say that the answer is not one of this protocol."""
