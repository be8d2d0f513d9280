# SPDX-License-Identifier: Apache-2.0
"""Keep the view of each YARN cluster fresh."""
