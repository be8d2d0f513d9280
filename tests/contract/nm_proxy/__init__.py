# SPDX-License-Identifier: Apache-2.0
"""Test the node side over real sockets, files and event loops, beside a made-up kernel and NodeManager."""
