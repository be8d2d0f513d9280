# SPDX-License-Identifier: Apache-2.0
"""Show amounts in Koordinator's units, as views and in words."""

from __future__ import annotations

from batch_resources.resources import BatchResources
from yarn_copilot.controller.view import BatchView


def batch_view(resources: BatchResources) -> BatchView:
    """Give the API's view of an amount."""
    return BatchView(cpu_milli=resources.cpu_milli, memory_bytes=resources.memory_bytes)


def batch_words(amount: BatchResources | BatchView) -> str:
    """Word an amount for messages, `4000 milli-cores and 1073741824 bytes`."""
    return f"{amount.cpu_milli} milli-cores and {amount.memory_bytes} bytes"
