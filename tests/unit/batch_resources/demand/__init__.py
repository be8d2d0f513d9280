# SPDX-License-Identifier: Apache-2.0
"""Test who waits for capacity, and where it is served."""
