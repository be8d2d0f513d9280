# SPDX-License-Identifier: Apache-2.0
"""Test the pure parts of the Kubernetes adapter."""
