# SPDX-License-Identifier: Apache-2.0
"""Check a whole installation before anything is written: the command `doctor`."""
