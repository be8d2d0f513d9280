// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Submit applications and pass commands to their masters.
 *
 * <p>Commands are JSON objects, one a line, on standard input; events come on standard output the same way. An
 * application lives in one queue, so the first command for a queue submits an application to it:
 *
 * <pre>
 * {"command":"open","queue":Q}
 * {"command":"ask","queue":Q,"id":N,"memory_mib":M,"vcores":V,"count":C,"node":HOST?,"duration_seconds":S?}
 * {"command":"release","queue":Q,"count":C}
 * {"command":"release_container","queue":Q,"container":ID}
 * {"command":"cancel","queue":Q}
 * {"command":"stop","queue":Q}
 * </pre>
 *
 * The end of standard input stops all of them.
 */
public final class Main {
  private Main() {}

  /** Arguments: application name, then for masters in containers their memory in MiB, vcores and class path. */
  public static void main(String[] arguments) throws Exception {
    JsonLines out = new JsonLines(System.out);
    Submitter submitter = new Submitter(new YarnConfiguration(), out, arguments);
    Map<String, Session> sessions = new HashMap<>();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String queue = "";
      try {
        Map<String, Object> command = JsonLines.parse(line);
        queue = (String) command.get("queue");
        Session session = sessions.get(queue);
        if (session == null) {
          session = submitter.submit(queue);
          sessions.put(queue, session);
        }
        if (!"open".equals(command.get("command"))) {
          session.handle(line, command);
        }
      } catch (Exception e) {
        out.event("error", "queue", queue, "message", line + ": " + e);
      }
    }
    for (Map.Entry<String, Session> entry : sessions.entrySet()) {
      String stop = "{\"command\":\"stop\"}";
      try {
        entry.getValue().handle(stop, JsonLines.parse(stop));
      } catch (Exception e) {
        out.event("error", "queue", entry.getKey(), "message", "stop: " + e);
      }
    }
    submitter.close();
    System.exit(0);
  }
}
