# SPDX-License-Identifier: Apache-2.0
"""Write requests and read responses, one module per Java interface; pure functions over bytes."""
