package muster.yarn;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * The conversation with the ResourceManager: a thread calls it again and again, and tells its listener what it answers.
 * YARN's own AMRMClientAsync does the same at a fixed interval; here a request goes at once, and what was asked for is
 * looked for more often in the first seconds.
 */
final class ResourceManager {
  /** The ResourceManager's thread calls it, with no lock held. */
  interface Listener {
    void onAllocated(List<Container> containers);

    void onCompleted(List<ContainerStatus> containers);

    void onAdopted(List<Container> containers);

    /** This attempt is no longer the application's. */
    void onShutdown();

    void onError(Throwable problem);
  }

  private static final long QUIET_MILLIS = 200;
  private static final long EAGER_MILLIS = 50;
  private static final long EAGER_FOR_MILLIS = 5000; // after a request, or the end of a container

  private final AMRMClient<ContainerRequest> client = AMRMClient.createAMRMClient();
  private final Listener listener;
  private final Thread thread = new Thread(this::converse, "ResourceManager");
  private boolean isWoken;
  private boolean isEnded;
  private long eagerUntil;

  ResourceManager(Listener listener) {
    this.listener = listener;
    thread.setDaemon(true);
  }

  RegisterApplicationMasterResponse register(YarnConfiguration configuration, String host, String trackingUrl)
      throws YarnException, IOException {
    client.init(configuration);
    client.start();
    RegisterApplicationMasterResponse answer = client.registerApplicationMaster(host, 0, trackingUrl);
    thread.start();
    return answer;
  }

  void ask(ContainerRequest request) {
    client.addContainerRequest(request);
    wake();
  }

  void withdraw(ContainerRequest request) {
    client.removeContainerRequest(request);
  }

  void release(Container container) {
    client.releaseAssignedContainer(container.getId());
  }

  void refuseNodes(List<String> added, List<String> removed) {
    client.updateBlacklist(added, removed);
  }

  int countNodes() {
    return client.getClusterNodeCount();
  }

  void unregister(FinalApplicationStatus status, String message) throws YarnException, IOException {
    synchronized (this) {
      isEnded = true;
      notifyAll();
    }
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    client.unregisterApplicationMaster(status, message, "");
  }

  private synchronized void wake() {
    eagerUntil = millis() + EAGER_FOR_MILLIS;
    isWoken = true;
    notifyAll();
  }

  private void converse() {
    try {
      while (awaitTurn()) {
        AllocateResponse answer = client.allocate(0);
        if (!answer.getCompletedContainersStatuses().isEmpty()) {
          synchronized (this) {
            eagerUntil = millis() + EAGER_FOR_MILLIS;
          }
          listener.onCompleted(answer.getCompletedContainersStatuses());
        }
        if (!answer.getAllocatedContainers().isEmpty()) {
          listener.onAllocated(answer.getAllocatedContainers());
        }
        if (!answer.getContainersFromPreviousAttempts().isEmpty()) {
          listener.onAdopted(answer.getContainersFromPreviousAttempts());
        }
      }
    } catch (ApplicationAttemptNotFoundException e) {
      listener.onShutdown();
    } catch (Throwable e) { // whatever it is, the attempt cannot go on
      listener.onError(e);
    }
  }

  /** Returns false once the application has unregistered. */
  private synchronized boolean awaitTurn() throws InterruptedException {
    long now = millis();
    long until = now + (now < eagerUntil ? EAGER_MILLIS : QUIET_MILLIS);
    while (!isWoken && !isEnded && now < until) {
      wait(until - now);
      now = millis();
    }
    isWoken = false;
    return !isEnded;
  }

  private static long millis() {
    return System.nanoTime() / 1_000_000;
  }
}
