# SPDX-License-Identifier: Apache-2.0
"""Search all interleavings of a small world for one in which a unit is sold twice."""
