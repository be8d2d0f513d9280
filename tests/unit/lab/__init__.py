# SPDX-License-Identifier: Apache-2.0
"""Check the pure parts of the lab."""
