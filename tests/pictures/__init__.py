# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of docs/sharing.md from runs of the product's own controller between in-process fakes.

`python -m tests.pictures FOLDER` writes them; a test compares them with those in docs/pictures, so they stay in step
with the code. Nothing here depends on the machine, the clock or chance: the time is advanced by hand, and all load is
made from textual seeds.
"""
