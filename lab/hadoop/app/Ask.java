// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.util.Map;

/** Hold what one command asks for: {@code count} equal containers. */
final class Ask {
  final int id;
  final int memoryMib;
  final int vcores;
  final int count;
  final String[] nodes;
  final double durationSeconds;
  final String command;

  Ask(Map<String, Object> command) {
    id = number(command, "id", 0).intValue();
    memoryMib = number(command, "memory_mib", 128).intValue();
    vcores = number(command, "vcores", 1).intValue();
    count = number(command, "count", 1).intValue();
    Object node = command.get("node");
    nodes = node == null ? null : new String[] {(String) node};
    durationSeconds = number(command, "duration_seconds", 0).doubleValue();
    this.command = (String) command.get("shell_command");
  }

  /** Return the shell command that a container of this ask runs: its own, or one that sleeps; 0 seconds means until it is stopped. */
  String shellCommand() {
    if (command != null) {
      return command;
    }
    return "exec sleep " + (durationSeconds > 0 ? Double.toString(durationSeconds) : "infinity");
  }

  private static Number number(Map<String, Object> command, String name, Number otherwise) {
    Object value = command.get(name);
    return value == null ? otherwise : (Number) value;
  }
}
