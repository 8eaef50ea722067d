package muster.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;

/**
 * A process slot (docs/formats/slots.md): the container of one incarnation of a task, from its request to its end.
 *
 * <p>YARN gives the next attempt of an ApplicationMaster the containers of the earlier ones, and of each only what was
 * in its request. So the incarnation is the request's allocationRequestId, and the task its priority; the attempt that
 * asked is in the container's id. The three make the slot's name, the same for every attempt.
 */
final class Slot {
  enum State { ASKED, RUNNING, ENDED }

  private static final List<String> TYPES = Arrays.asList("chief", "evaluator", "master", "ps", "worker");
  private static final int TASKS_OF_TYPE = 100000;

  final int attempt;
  final long incarnation;
  final String task;
  Resource capability; // that is asked for
  String label = ""; // of the nodes to ask; "": the application's
  Map<String, String> environment; // of its container, beside that of all
  ContainerRequest request; // until a container is given
  Container container; // null before
  State state = State.ASKED;
  int exit;
  boolean disrupted;
  String detail = "";
  boolean isStopping; // its NodeManager is being told to end it
  CommandOf command; // of its agent

  Slot(int attempt, long incarnation, String task) {
    this.attempt = attempt;
    this.incarnation = incarnation;
    this.task = task;
    environment = Collections.emptyMap();
  }

  /** "worker" of worker-1. */
  String getType() {
    return task.substring(0, task.lastIndexOf('-'));
  }

  String getHost() {
    return container.getNodeId().getHost();
  }

  /** The slot of a container that an earlier attempt was given; null if no attempt of ours asked for it. */
  static Slot of(Container container) {
    String task = getTask(container.getPriority());
    if (task == null || container.getAllocationRequestId() <= 0) {
      return null;
    }
    Slot slot =
        new Slot(
            container.getId().getApplicationAttemptId().getAttemptId(), container.getAllocationRequestId(), task);
    slot.container = container;
    slot.state = State.RUNNING;
    return slot;
  }

  static Priority getPriority(String task) {
    int dash = task.lastIndexOf('-');
    int type = TYPES.indexOf(task.substring(0, dash));
    return Priority.newInstance(1 + type * TASKS_OF_TYPE + Integer.parseInt(task.substring(dash + 1)));
  }

  private static String getTask(Priority priority) {
    int number = priority.getPriority() - 1;
    if (number < 0 || number >= TYPES.size() * TASKS_OF_TYPE) {
      return null;
    }
    return TYPES.get(number / TASKS_OF_TYPE) + "-" + number % TASKS_OF_TYPE;
  }

  String getName() {
    return attempt + "-" + incarnation;
  }

  void end(int exit, boolean disrupted, String detail) {
    state = State.ENDED;
    this.exit = exit;
    this.disrupted = disrupted;
    this.detail = detail;
  }

  void write(ObjectNode json) {
    json.put("slot", getName());
    json.put("task", task);
    json.put("incarnation", incarnation);
    json.put("state", state.name().toLowerCase());
    if (container != null) {
      json.put("host", container.getNodeHttpAddress() + " " + container.getId());
      json.put("process", container.getId().toString());
    }
    if (state == State.ENDED) {
      json.put("exit", exit);
      json.put("disrupted", disrupted);
      json.put("detail", detail);
    }
  }
}
