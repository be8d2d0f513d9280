# SPDX-License-Identifier: Apache-2.0
"""Play everything around the product in processes of their own, told over pipes with one JSON object per line."""
