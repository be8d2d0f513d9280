// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.NMTokenCache;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * Be the ApplicationMaster: hold containers as commands say and tell every change.
 *
 * <p>Each ask has a priority of its own, because YARN allows one size for each priority. One thread beats; commands
 * come from another, so everything mutable is guarded by this object.
 */
final class Master {
  private static final long BEAT_MILLIS = 200;

  private final JsonLines out;
  private final String queue;
  private final AMRMClient<ContainerRequest> manager = AMRMClient.createAMRMClient();
  private final NMClient nodes = NMClient.createNMClient();
  private final ExecutorService starters = Executors.newFixedThreadPool(8, Master::daemon);
  private final Map<Integer, Ask> asks = new HashMap<>();
  private final Map<Integer, Deque<ContainerRequest>> pending = new HashMap<>();
  private final Map<ContainerId, Container> held = new LinkedHashMap<>();
  private final String extraClosing;
  private volatile boolean ended;

  Master(Configuration conf, JsonLines out, String queue, String application) {
    this.out = out;
    this.queue = queue;
    this.extraClosing = application;
    NMTokenCache tokens = new NMTokenCache();
    manager.setNMTokenCache(tokens);
    nodes.setNMTokenCache(tokens);
    nodes.cleanupRunningContainersOnStop(false); // the RM stops them when the application ends
    manager.init(conf);
    nodes.init(conf);
    manager.start();
    nodes.start();
  }

  /** Register at the ResourceManager and begin to beat. */
  void register() throws YarnException, IOException {
    manager.registerApplicationMaster("localhost", 0, "");
    out.event("registered", "queue", queue, "application", extraClosing);
    daemon(this::beatUntilEnded).start();
  }

  /** Carry out one command of the wire format. */
  void handle(Map<String, Object> command) throws YarnException, IOException {
    switch ((String) command.get("command")) {
      case "ask":
        ask(new Ask(command));
        break;
      case "release":
        release((Integer) command.get("count"));
        break;
      case "release_container":
        releaseContainer((String) command.get("container"));
        break;
      case "cancel":
        cancel();
        break;
      case "stop":
        stop();
        break;
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private synchronized void ask(Ask ask) {
    Deque<ContainerRequest> requests = new ArrayDeque<>();
    for (int each = 0; each < ask.count; each++) {
      ContainerRequest request =
          new ContainerRequest(
              Resource.newInstance(ask.memoryMib, ask.vcores),
              ask.nodes,
              null,
              Priority.newInstance(ask.id),
              ask.nodes == null);
      requests.add(request);
      manager.addContainerRequest(request);
    }
    asks.put(ask.id, ask);
    pending.put(ask.id, requests);
  }

  /** Give the newest containers back. */
  private synchronized void release(int count) {
    List<ContainerId> newest = new ArrayList<>(held.keySet());
    Collections.reverse(newest);
    newest.stream().limit(count).forEach(manager::releaseAssignedContainer);
  }

  private synchronized void releaseContainer(String id) {
    manager.releaseAssignedContainer(ContainerId.fromString(id));
  }

  /** Withdraw what was asked for and not given yet. */
  private synchronized void cancel() {
    pending.values().forEach(requests -> requests.forEach(manager::removeContainerRequest));
    pending.clear();
  }

  void stop() throws YarnException, IOException {
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
      manager.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
    }
    starters.shutdownNow();
    out.event("finished", "queue", queue);
  }

  private void beatUntilEnded() {
    while (!ended) {
      try {
        beat();
        Thread.sleep(BEAT_MILLIS);
      } catch (InterruptedException e) {
        return;
      } catch (YarnException | IOException | RuntimeException e) {
        if (!ended) {
          failed("heartbeat", e);
          ended = isFinal(e);
        }
      }
    }
  }

  private synchronized void beat() throws YarnException, IOException {
    if (ended) {
      return;
    }
    AllocateResponse response = manager.allocate(0.5f);
    for (Container container : response.getAllocatedContainers()) {
      take(container);
    }
    for (ContainerStatus status : response.getCompletedContainersStatuses()) {
      held.remove(status.getContainerId());
      out.event(
          "completed",
          "container", status.getContainerId().toString(),
          "exit_status", status.getExitStatus(),
          "diagnostics", status.getDiagnostics());
    }
    PreemptionMessage preemption = response.getPreemptionMessage();
    if (preemption != null) {
      tell(preemption);
    }
  }

  private void take(Container container) {
    int id = container.getPriority().getPriority();
    Deque<ContainerRequest> requests = pending.get(id);
    if (requests == null || requests.isEmpty()) {
      manager.releaseAssignedContainer(container.getId()); // cancelled while it was on its way
      return;
    }
    manager.removeContainerRequest(requests.remove());
    held.put(container.getId(), container);
    out.event(
        "allocated",
        "container", container.getId().toString(),
        "queue", queue,
        "ask", id,
        "node", container.getNodeId().toString(),
        "memory_mib", container.getResource().getMemorySize(),
        "vcores", container.getResource().getVirtualCores());
    String command = asks.get(id).shellCommand();
    starters.execute(() -> start(container, command));
  }

  private void start(Container container, String command) {
    ContainerLaunchContext context =
        ContainerLaunchContext.newInstance(
            Collections.emptyMap(), Collections.emptyMap(), Collections.singletonList(command), null, null, null);
    try {
      nodes.startContainer(container, context);
      out.event("running", "container", container.getId().toString());
    } catch (YarnException | IOException | RuntimeException e) {
      failed("start of " + container.getId(), e);
      synchronized (this) {
        manager.releaseAssignedContainer(container.getId());
      }
    }
  }

  private void tell(PreemptionMessage message) {
    List<String> strict = new ArrayList<>();
    List<String> negotiable = new ArrayList<>();
    if (message.getStrictContract() != null) {
      add(message.getStrictContract().getContainers(), strict);
    }
    if (message.getContract() != null) {
      add(message.getContract().getContainers(), negotiable);
    }
    out.event("preemption", "queue", queue, "strict", strict, "negotiable", negotiable);
  }

  private static void add(Iterable<PreemptionContainer> containers, List<String> ids) {
    containers.forEach(container -> ids.add(container.getId().toString()));
  }

  private void failed(String what, Exception e) {
    out.event("error", "queue", queue, "message", what + ": " + e);
  }

  private static boolean isFinal(Exception e) {
    return e instanceof org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException;
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  }
}
