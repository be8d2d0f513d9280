// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/** Submit applications, with the master in this process (unmanaged) or in a container. */
final class Submitter {
  private static final long POLL_MILLIS = 50;
  private static final int CONNECT_TIMEOUT_MILLIS = 120_000;

  private final Configuration conf;
  private final JsonLines out;
  private final String name;
  private final String[] container;
  private final YarnClient client = YarnClient.createYarnClient();

  Submitter(Configuration conf, JsonLines out, String[] arguments) {
    this.conf = conf;
    this.out = out;
    this.name = arguments[0];
    this.container = arguments.length > 1 ? arguments : null;
    client.init(conf);
    client.start();
  }

  void close() {
    client.stop();
  }

  /** Submit an application to a queue and wait until its master is registered. */
  Session submit(String queue) throws Exception {
    ApplicationSubmissionContext context = client.createApplication().getApplicationSubmissionContext();
    context.setApplicationName(name);
    context.setApplicationType("LAB");
    context.setQueue(queue);
    context.setPriority(Priority.newInstance(0));
    context.setMaxAppAttempts(1);
    ApplicationId id = context.getApplicationId();
    out.event("submitted", "queue", queue, "application", id.toString());
    return container == null ? unmanaged(context, queue, id) : inContainer(context, queue, id);
  }

  private Session unmanaged(ApplicationSubmissionContext context, String queue, ApplicationId id) throws Exception {
    context.setUnmanagedAM(true);
    context.setResource(Resource.newInstance(0, 0)); // no container: nothing is taken from a node
    context.setAMContainerSpec(launchContext("true"));
    client.submitApplication(context);
    Token<AMRMTokenIdentifier> token = awaitToken(id);
    UserGroupInformation user =
        UserGroupInformation.createRemoteUser(UserGroupInformation.getCurrentUser().getShortUserName());
    user.addToken(token);
    Master master =
        user.doAs(
            (PrivilegedExceptionAction<Master>)
                () -> {
                  Master made = new Master(conf, out, queue, id.toString());
                  made.register();
                  return made;
                });
    return (line, command) ->
        user.doAs(
            (PrivilegedExceptionAction<Void>)
                () -> {
                  master.handle(command);
                  return null;
                });
  }

  private Token<AMRMTokenIdentifier> awaitToken(ApplicationId id)
      throws YarnException, IOException, InterruptedException {
    while (true) {
      ApplicationReport report = client.getApplicationReport(id);
      YarnApplicationState state = report.getYarnApplicationState();
      if (state == YarnApplicationState.FAILED || state == YarnApplicationState.KILLED) {
        throw new IOException("application " + id + " is " + state + ": " + report.getDiagnostics());
      }
      Token<AMRMTokenIdentifier> token = client.getAMRMToken(id);
      if (state == YarnApplicationState.ACCEPTED && token != null) {
        return token;
      }
      Thread.sleep(POLL_MILLIS);
    }
  }

  private Session inContainer(ApplicationSubmissionContext context, String queue, ApplicationId id) throws Exception {
    try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      listener.setSoTimeout(CONNECT_TIMEOUT_MILLIS);
      String command =
          String.join(
              " ",
              "exec", container[3], "lab.app.MasterMain", Integer.toString(listener.getLocalPort()), queue,
              id.toString(), "2>&1");
      context.setResource(
          Resource.newInstance(Integer.parseInt(container[1]), Integer.parseInt(container[2])));
      context.setAMContainerSpec(launchContext(command));
      client.submitApplication(context);
      Socket socket = listener.accept();
      PrintStream commands = new PrintStream(socket.getOutputStream(), true, "UTF-8");
      Thread relay = new Thread(() -> relay(socket, queue));
      relay.setDaemon(true);
      relay.start();
      return (line, parsed) -> {
        commands.println(line);
        if ("stop".equals(parsed.get("command"))) {
          relay.join(10_000);
        }
      };
    }
  }

  private void relay(Socket socket, String queue) {
    try (BufferedReader events =
        new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = events.readLine(); line != null; line = events.readLine()) {
        out.write(line);
        if (line.startsWith("{\"event\":\"finished\"")) {
          socket.close();
          return;
        }
      }
      out.event("master_lost", "queue", queue);
    } catch (IOException e) {
      out.event("master_lost", "queue", queue, "message", e.toString());
    }
  }

  private static ContainerLaunchContext launchContext(String command) {
    return ContainerLaunchContext.newInstance(
        Collections.emptyMap(), Collections.emptyMap(), Collections.singletonList(command), null, null, null);
  }
}
