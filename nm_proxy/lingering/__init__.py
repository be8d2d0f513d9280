# SPDX-License-Identifier: Apache-2.0
"""Find processes that outlived their YARN container, report what they hold and end them after a delay."""
