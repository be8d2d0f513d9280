# SPDX-License-Identifier: Apache-2.0
"""Give every error of this program one root.

Each adapter has one base below `YarnCopilotError` (`HadoopRPCError`, `KubeAPIError`, `ConfigError`); no exception
of a library leaves an adapter.
"""

from __future__ import annotations

from typing import ClassVar


class YarnCopilotError(Exception):
    """Be the root of all errors that this program raises on purpose.

    `retryable` says whether doing the same again, unchanged, can succeed.
    """

    retryable: ClassVar[bool] = False


class ConfigError(YarnCopilotError):
    """Say that a configuration file or key is wrong; the text names file, key, value and what is allowed."""
