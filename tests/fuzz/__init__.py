# SPDX-License-Identifier: Apache-2.0
"""Fuzz with coverage as the guide (atheris); started by `make fuzz`, never by pytest."""
