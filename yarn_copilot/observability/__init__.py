# SPDX-License-Identifier: Apache-2.0
"""Tell what happens: logs, metrics, reasons."""
