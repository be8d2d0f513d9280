# SPDX-License-Identifier: Apache-2.0
"""Race the whole controller, on fakes that are late and lose things, against both schedulers with real quantities."""
