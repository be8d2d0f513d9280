# SPDX-License-Identifier: Apache-2.0
"""Hold generated protobuf code and the .proto files it is made from; see README.md of yarn_copilot/hadoop/proto."""
