# SPDX-License-Identifier: Apache-2.0
"""Model the settings: one class per concern, strict, documented per field."""
