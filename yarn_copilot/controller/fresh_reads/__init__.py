# SPDX-License-Identifier: Apache-2.0
"""Read single nodes afresh, right before YARN grows on them."""
