# SPDX-License-Identifier: Apache-2.0
"""Define the errors of the lab."""

from __future__ import annotations


class LabError(RuntimeError):
    """Say which part of the lab failed, at what, and what its log says."""
