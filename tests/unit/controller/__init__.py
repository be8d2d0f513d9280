# SPDX-License-Identifier: Apache-2.0
"""Test the controller without servers: fakes hold state, time is the test's."""
