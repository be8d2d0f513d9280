# SPDX-License-Identifier: Apache-2.0
"""Tell Koordinator what YARN holds."""
