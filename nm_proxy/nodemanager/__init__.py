# SPDX-License-Identifier: Apache-2.0
"""Speak to one NodeManager: its REST pages, its pid files and the processes it started."""
