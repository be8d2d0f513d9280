# SPDX-License-Identifier: Apache-2.0
"""Test what `doctor` finds."""
