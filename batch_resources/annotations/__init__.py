# SPDX-License-Identifier: Apache-2.0
"""Read and write the two Node annotations through which Koordinator and the bridge talk."""
