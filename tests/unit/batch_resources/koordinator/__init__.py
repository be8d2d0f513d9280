# SPDX-License-Identifier: Apache-2.0
"""Check the copy of Koordinator's rules against recorded numbers."""
