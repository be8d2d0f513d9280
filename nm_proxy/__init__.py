# SPDX-License-Identifier: Apache-2.0
"""Be the entry point of a NodeManager's container: place, watch, list and end YARN's tasks on one node."""
