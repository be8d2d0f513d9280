# SPDX-License-Identifier: Apache-2.0
"""Test the project's images in containers."""
