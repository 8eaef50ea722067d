package muster.yarn;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** The slots that YARN gives. Its calls and YARN's callbacks hold its lock; both wake who waits on it. */
final class Platform implements ResourceManager.Listener {
  private static final long NODE_WAIT_MILLIS = 10000;
  private static final int LAUNCHERS = 8;
  private static final String GPU = "yarn.io/gpu";
  private static final long MIB = 1 << 20;
  private static final String CAUSED_BY = "Caused by: ";
  private static final String USAGE = "Current usage: ";
  private static final int MAX_SAID = 400;

  private final int attempt;
  private final Map<String, LocalResource> resources;
  private final Map<String, String> environment;
  private final Placement placement;
  private final Tokens tokens;
  private final Map<String, Slot> slots = new LinkedHashMap<>();
  private final List<ContainerStatus> strangers = new ArrayList<>();
  private final ExecutorService launchers = Executors.newFixedThreadPool(LAUNCHERS);
  private final ResourceManager manager = new ResourceManager(this);
  private final NMClient nodes = NMClient.createNMClient();
  private Resource most;
  private String queue = "";
  private boolean isShutDown;
  private String error = "";

  Platform(
      int attempt,
      Map<String, LocalResource> resources,
      Map<String, String> environment,
      Placement placement,
      Tokens tokens) {
    this.attempt = attempt;
    this.resources = resources;
    this.environment = environment;
    this.placement = placement;
    this.tokens = tokens;
  }

  void start(String host, String trackingUrl) throws YarnException, IOException {
    YarnConfiguration configuration = new YarnConfiguration();
    // A node that does not answer must not hold up the others for minutes.
    configuration.setLong(YarnConfiguration.CLIENT_NM_CONNECT_MAX_WAIT_MS, NODE_WAIT_MILLIS);
    nodes.init(configuration);
    nodes.cleanupRunningContainersOnStop(false); // they belong to the job, not to this process
    nodes.start();
    RegisterApplicationMasterResponse answer = manager.register(configuration, host, trackingUrl);
    synchronized (this) {
      most = answer.getMaximumResourceCapability();
      queue = answer.getQueue();
      adopt(answer.getContainersFromPreviousAttempts());
    }
  }

  private synchronized void adopt(List<Container> containers) {
    for (Container container : containers) {
      Slot slot = Slot.of(container);
      if (slot == null) {
        manager.release(container);
      } else if (slots.putIfAbsent(slot.getName(), slot) == null) {
        placement.take(slot.getHost(), millis());
        System.err.println("adopted " + container.getId() + ": " + slot.task + " incarnation " + slot.incarnation);
      }
    }
    notifyAll();
  }

  /** The queue that the application is in. */
  synchronized String getQueue() {
    return queue;
  }

  synchronized List<Slot> getSlots() {
    return new ArrayList<>(slots.values());
  }

  /** Containers that earlier attempts asked for and that had ended before this one heard of them. */
  synchronized List<ContainerStatus> getStrangers() {
    return new ArrayList<>(strangers);
  }

  synchronized boolean isEmpty() {
    return slots.values().stream().allMatch(slot -> slot.state == Slot.State.ENDED);
  }

  /** Whether this attempt is no longer the application's. */
  synchronized boolean isShutDown() {
    return isShutDown;
  }

  synchronized String getError() {
    return error;
  }

  synchronized void forget(String name) {
    slots.remove(name);
  }

  /** Asks for a slot, in which `command` is to run. */
  synchronized void want(Slot slot, long memoryBytes, int cores, int gpus, CommandOf command) {
    slots.put(slot.getName(), slot);
    slot.command = command;
    Resource wanted = Resource.newInstance((memoryBytes + MIB - 1) / MIB, cores);
    if (wanted.getMemorySize() > most.getMemorySize() || cores > most.getVirtualCores()) {
      slot.end(
          ContainerExitStatus.INVALID,
          false,
          "it wants " + describe(wanted) + ", and a container of this queue has at most " + describe(most));
      return;
    }
    try {
      if (gpus > 0) {
        wanted.setResourceValue(GPU, gpus);
      }
    } catch (RuntimeException e) { // ResourceNotFoundException of Hadoop 3
      slot.end(ContainerExitStatus.INVALID, false, "it wants " + gpus + " GPUs, and this cluster has no " + GPU);
      return;
    }
    slot.capability = wanted;
    ask(slot);
  }

  private void ask(Slot slot) {
    String host = placement.getOnlyHost();
    ContainerRequest.ContainerRequestBuilder request =
        ContainerRequest.newBuilder()
            .capability(slot.capability)
            .priority(Slot.getPriority(slot.task))
            .allocationRequestId(slot.incarnation)
            .relaxLocality(host == null);
    if (host != null) {
      request.nodes(new String[] {host});
    } else if (!slot.label.isEmpty()) {
      request.nodeLabelsExpression(slot.label);
    }
    slot.request = request.build();
    manager.ask(slot.request);
  }

  private void askAgain(Slot slot) {
    manager.withdraw(slot.request);
    ask(slot);
  }

  /** Call it now and then: what cannot be had as it was wanted is asked for in another way. */
  synchronized void look() {
    List<Slot> waiting = new ArrayList<>();
    for (Slot slot : slots.values()) {
      if (slot.request != null) {
        waiting.add(slot);
      }
    }
    List<String> refused = new ArrayList<>(placement.getRefused());
    if (placement.relax(!waiting.isEmpty(), millis())) {
      manager.refuseNodes(null, refused);
      waiting.forEach(this::askAgain);
    }
  }

  private static long millis() {
    return System.nanoTime() / 1_000_000;
  }

  // Its container has ended.
  private void free(Slot slot) {
    boolean was_refused = placement.getRefused().contains(slot.getHost());
    placement.free(slot.getHost());
    if (was_refused) {
      manager.refuseNodes(null, Collections.singletonList(slot.getHost()));
    }
  }

  private static String describe(Resource resource) {
    return resource.getMemorySize() + " MiB and " + resource.getVirtualCores() + " vcores";
  }

  synchronized void kill(String name) {
    Slot slot = slots.get(name);
    if (slot == null || slot.state == Slot.State.ENDED) {
      return;
    }
    if (slot.container == null) {
      manager.withdraw(slot.request);
      slot.request = null;
      slot.end(ContainerExitStatus.ABORTED, true, "it was not needed any more before it was given");
    } else if (!slot.isStopping) {
      slot.isStopping = true;
      launchers.execute(() -> stop(slot, false));
    }
  }

  // Only the ResourceManager's word that the container has completed is its end. A container that is released counts
  // as completed at once, so that is done for those alone that do not run.
  private void stop(Slot slot, boolean thenRelease) {
    Container container = slot.container;
    try {
      nodes.stopContainer(container.getId(), container.getNodeId());
    } catch (YarnException | IOException e) {
      System.err.println("cannot stop " + container.getId() + ": " + e.getMessage());
    }
    if (thenRelease) {
      manager.release(container);
    }
    synchronized (this) {
      slot.isStopping = false; // the coordinator says it again if it has not ended
    }
  }

  private void launch(Slot slot) {
    Container container = slot.container;
    List<String> commands = Collections.singletonList(slot.command.of(container));
    Map<String, String> all = new HashMap<>(environment);
    all.putAll(slot.environment);
    try {
      ContainerLaunchContext context =
          ContainerLaunchContext.newInstance(
              resources, all, commands, Collections.<String, ByteBuffer>emptyMap(), tokens.get(), null);
      nodes.startContainer(container, context);
      synchronized (this) {
        if (slot.state == Slot.State.ASKED) {
          slot.state = Slot.State.RUNNING;
        }
        notifyAll();
      }
    } catch (YarnException | IOException e) {
      System.err.println("cannot start " + container.getId() + ": " + e.getMessage());
      synchronized (this) {
        slot.detail = "its NodeManager did not start it: " + e.getMessage();
        slot.isStopping = true;
      }
      stop(slot, true);
    }
  }

  void finish(FinalApplicationStatus status, String message) {
    try {
      manager.unregister(status, message);
    } catch (YarnException | IOException e) {
      System.err.println("cannot unregister: " + e);
    }
  }

  @Override
  public synchronized void onAllocated(List<Container> given) {
    for (Container container : given) {
      Slot slot = slots.get(attempt + "-" + container.getAllocationRequestId());
      if (slot == null || slot.request == null) { // more than was asked for, or not wanted any more
        manager.release(container);
        continue;
      }
      String host = container.getNodeId().getHost();
      if (!placement.takes(host, manager.countNodes())) {
        manager.release(container);
        manager.refuseNodes(new ArrayList<>(placement.getRefused()), null);
        askAgain(slot);
        continue;
      }
      placement.take(host, millis());
      manager.withdraw(slot.request);
      slot.request = null;
      slot.container = container;
      launchers.execute(() -> launch(slot));
    }
    notifyAll();
  }

  @Override
  public synchronized void onCompleted(List<ContainerStatus> ended) {
    for (ContainerStatus status : ended) {
      Slot slot = find(status.getContainerId());
      if (slot == null && status.getContainerId().getApplicationAttemptId().getAttemptId() < attempt) {
        strangers.add(status);
      }
      if (slot == null || slot.state == Slot.State.ENDED) {
        continue;
      }
      free(slot);
      int exit = status.getExitStatus();
      slot.end(exit, isDisruption(exit), slot.detail.isEmpty() ? describe(status) : slot.detail);
    }
    notifyAll();
  }

  /** Why a container has ended, in one line, and what to do where that is known. */
  static String describe(ContainerStatus status) {
    int exit = status.getExitStatus();
    String said = shorten(status.getDiagnostics());
    if (exit != ContainerExitStatus.KILLED_EXCEEDED_PMEM && exit != ContainerExitStatus.KILLED_EXCEEDED_VMEM) {
      return said;
    }
    int begin = said.indexOf(USAGE);
    String usage = begin < 0 ? "" : said.substring(begin + USAGE.length()).replaceFirst("\\. Killing.*", "");
    return "YARN has ended it, since it took more memory than its container has ("
        + usage
        + "): give it more by --memory, or by resources.limits in a job file";
  }

  /** One line: what was said first, and the last cause of an exception. */
  static String shorten(String diagnostics) {
    String first = "";
    String cause = "";
    for (String line : String.valueOf(diagnostics).split("\n")) {
      String text = line.trim().replaceFirst("^\\[[-0-9:. ]+\\] *", "");
      if (text.startsWith(CAUSED_BY)) {
        cause = text.substring(CAUSED_BY.length());
      } else if (first.isEmpty() && !text.startsWith("at ")) {
        first = text;
      } else if (!cause.isEmpty() && !line.startsWith("\t") && !text.isEmpty()) {
        cause += " " + text; // of a message of several lines
      }
    }
    String said = cause.isEmpty() ? first : first + ": " + cause;
    return said.length() > MAX_SAID ? said.substring(0, MAX_SAID) : said;
  }

  static boolean isDisruption(int exit) {
    return exit == ContainerExitStatus.ABORTED
        || exit == ContainerExitStatus.PREEMPTED
        || exit == ContainerExitStatus.DISKS_FAILED
        || exit == ContainerExitStatus.KILLED_BY_RESOURCEMANAGER;
  }

  private Slot find(ContainerId id) {
    for (Slot slot : slots.values()) {
      if (slot.container != null && slot.container.getId().equals(id)) {
        return slot;
      }
    }
    return null;
  }

  @Override
  public void onAdopted(List<Container> containers) {
    adopt(containers);
  }

  @Override
  public synchronized void onShutdown() {
    isShutDown = true;
    notifyAll();
  }

  @Override
  public synchronized void onError(Throwable problem) {
    error = String.valueOf(problem);
    notifyAll();
  }
}
