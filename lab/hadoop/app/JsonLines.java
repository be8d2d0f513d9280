// SPDX-License-Identifier: Apache-2.0
package lab.app;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;

/** Write events as JSON objects, one a line; safe to use from several threads. */
final class JsonLines {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private final PrintStream out;

  JsonLines(PrintStream out) {
    this.out = out;
  }

  /** Write one event; {@code fields} alternates names and values. */
  void event(String kind, Object... fields) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("event", kind);
    line.put("time_millis", System.currentTimeMillis());
    for (int at = 0; at < fields.length; at += 2) {
      line.put((String) fields[at], fields[at + 1]);
    }
    try {
      write(MAPPER.writeValueAsString(line));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Write a line that is JSON already. */
  synchronized void write(String line) {
    out.println(line);
    out.flush();
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> parse(String line) throws IOException {
    return MAPPER.readValue(line, Map.class);
  }
}
