// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** Run a {@link Master} in a container; commands and events go over a connection to the client. */
public final class MasterMain {
  private MasterMain() {}

  /** Arguments: port of the client on 127.0.0.1, queue, application id. */
  public static void main(String[] arguments) throws Exception {
    try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(arguments[0]))) {
      JsonLines out = new JsonLines(new PrintStream(socket.getOutputStream(), false, "UTF-8"));
      Master master = new Master(new YarnConfiguration(), out, arguments[1], arguments[2]);
      master.register();
      BufferedReader in =
          new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        try {
          master.handle(JsonLines.parse(line));
        } catch (Exception e) {
          out.event("error", "queue", arguments[1], "message", line + ": " + e);
        }
      }
      master.stop();
    }
    System.exit(0);
  }
}
