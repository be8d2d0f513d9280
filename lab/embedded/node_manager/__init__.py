# SPDX-License-Identifier: Apache-2.0
"""Serve a NodeManager's REST pages in this process, for tests of the node side."""
