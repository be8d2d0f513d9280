# SPDX-License-Identifier: Apache-2.0
"""Check a node before its NodeManager starts: look first (`observing`), then judge without I/O (`*_checks`)."""
