package muster.yarn;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.LocalResourceType;
import org.apache.hadoop.yarn.api.records.LocalResourceVisibility;
import org.apache.hadoop.yarn.api.records.URL;

/**
 * Muster's ApplicationMaster: a provider of process slots (docs/formats/slots.md). It starts the job's coordinator as
 * its child and does what that says: asks for containers, starts agents in them, ends them, and tells how they ended.
 * It decides nothing.
 *
 * <p>usage: ApplicationMaster FOLDER, whose am.json is written by the submission (src/muster/launch/yarn)
 */
public final class ApplicationMaster {
  private static final long POLL_MILLIS = 200;
  private static final long EAGER_POLL_MILLIS = 30;
  private static final long EAGER_FOR_MILLIS = 3000; // after the start, and after what was wanted or has ended
  private static final int MAX_STARTS = 5; // of the coordinator without an answer in between
  private static final long RESTART_MILLIS = 1000;
  private static final String PROGRAM = "/programs/muster"; // in the folder
  private static final String TASK_FILES = "/task.tar"; // in the folder

  private final File folder;
  private final JsonNode job;
  private final ContainerId own;
  private final String host;
  private final int attempt;
  private final ObjectMapper mapper;
  private final Coordinator coordinator;
  private Platform platform; // from run() on
  private long sequence;
  private long eagerUntil;
  private int starts;

  private ApplicationMaster(File folder) throws Exception {
    this.folder = folder;
    mapper = new ObjectMapper();
    job = mapper.readTree(new File(folder, "am.json"));
    own = ContainerId.fromString(System.getenv(ApplicationConstants.Environment.CONTAINER_ID.key()));
    attempt = own.getApplicationAttemptId().getAttemptId();
    host = System.getenv(ApplicationConstants.Environment.NM_HOST.key());
    coordinator = new Coordinator(makeCoordinatorCommand(), folder);
  }

  private String getStaging() {
    return job.get("staging").asText();
  }

  private List<String> makeCoordinatorCommand() {
    return Arrays.asList(
        folder.getPath() + PROGRAM, "slot-coordinator", folder.getPath(),
        "--state", getStaging() + "/state",
        "--attempt", String.valueOf(attempt),
        "--host", host,
        "--state-patience", job.get("state_patience").asText(),
        "--url-file", getStaging() + "/coordinator",
        "--end-with-stdin");
  }

  private Map<String, LocalResource> readResources() {
    Map<String, LocalResource> resources = new HashMap<>();
    for (JsonNode each : job.get("resources")) {
      resources.put(
          each.get("name").asText(),
          LocalResource.newInstance(
              URL.fromURI(java.net.URI.create(each.get("url").asText())),
              LocalResourceType.valueOf(each.get("type").asText()),
              LocalResourceVisibility.valueOf(each.get("visibility").asText()),
              each.get("size").asLong(),
              each.get("timestamp").asLong()));
    }
    return resources;
  }

  private Map<String, String> readEnvironment() {
    Map<String, String> environment = new HashMap<>();
    job.get("environment").fields().forEachRemaining(e -> environment.put(e.getKey(), e.getValue().asText()));
    return environment;
  }

  private Placement readPlacement() {
    String kind = job.path("placement").asText();
    return new Placement(
        kind.isEmpty() ? Placement.Kind.ANY : Placement.Kind.valueOf(kind.toUpperCase(Locale.ROOT)),
        job.get("tasks").asInt());
  }

  private Tokens readTokens() throws IOException {
    File keytab = new File(folder, "keytab");
    return new Tokens(keytab.exists() ? keytab : null, job.path("renewer").asText());
  }

  /** What the job says of a type of task alone, or of all; "" if nothing. */
  private String find(String what, String type) {
    JsonNode said = job.path(what);
    return said.path(said.has(type) ? type : "").asText();
  }

  /** By which NodeManagers that can do so run the task in a container of Docker. */
  private Map<String, String> makeImageEnvironment(String type) {
    String image = find("images", type);
    if (image.isEmpty()) {
      return Collections.emptyMap();
    }
    Map<String, String> environment = new HashMap<>();
    environment.put("YARN_CONTAINER_RUNTIME_TYPE", "docker");
    environment.put("YARN_CONTAINER_RUNTIME_DOCKER_IMAGE", image);
    return environment;
  }

  // In double quotes of a shell: no word may hold what it would replace, and none does. The file "task" beside the
  // container's output says whose that is, to people and to launch/yarn/aggregated_log.h.
  private String makeAgentCommand(Slot slot, JsonNode wanted) {
    String name = folder.getPath();
    String logs = ApplicationConstants.LOG_DIR_EXPANSION_VAR;
    List<String> words =
        new ArrayList<>(
            Arrays.asList(
                "mkdir -p -m 700", name + "/agents", name + "/logs &&",
                "tar -xf", name + TASK_FILES, "-C", name, "&&",
                "echo", slot.task, String.valueOf(slot.incarnation), ">" + logs + "/task &&",
                "HADOOP_CONF_DIR=$PWD/" + name + "/conf", makeTicketVariables("$PWD"), "exec", "./" + name + PROGRAM, "agent", "--swept",
                "--bundle", name, "--task", slot.task,
                "--incarnation", String.valueOf(slot.incarnation),
                "--coordinator", coordinator.getUrl(),
                "--find-coordinator", getStaging() + "/coordinator",
                "--host", "$NM_HOST", "--slot", slot.getName(),
                "--lease", wanted.get("lease_seconds").asText(), "--also-stdout", "--fetch-certificates"));
    if (wanted.path("port").asInt() > 0) {
      words.addAll(Arrays.asList("--port", wanted.get("port").asText()));
    }
    if (wanted.path("port_required").asBoolean()) {
      words.add("--port-required");
    }
    words.add("1>" + logs + "/stdout 2>" + logs + "/stderr");
    return String.join(" ", words);
  }

  // With a keytab tickets are got as they are needed, and kept in the container.
  private String makeTicketVariables(String container) {
    if (!new File(folder, "keytab").exists()) {
      return "";
    }
    String path = container + "/" + folder.getPath();
    return "KRB5_CLIENT_KTNAME=" + path + "/keytab KRB5CCNAME=" + path + "/ticket";
  }

  private JsonNode report() {
    ObjectNode report = mapper.createObjectNode();
    report.put("provider", "yarn");
    report.put("attempt", attempt);
    report.put("sequence", ++sequence);
    report.put("gives", "container of YARN's queue " + platform.getQueue());
    ArrayNode slots = report.putArray("slots");
    ArrayNode ended = report.putArray("ended");
    synchronized (platform) {
      for (Slot slot : platform.getSlots()) {
        slot.write(slots.addObject());
        if (slot.state == Slot.State.ENDED) {
          hurry();
        }
      }
      for (ContainerStatus status : platform.getStrangers()) {
        ended.addObject()
            .put("process", status.getContainerId().toString())
            .put("exit", status.getExitStatus())
            .put("disrupted", Platform.isDisruption(status.getExitStatus()))
            .put("detail", Platform.describe(status));
      }
    }
    return coordinator.post("/v1/slots", report);
  }

  private void obey(JsonNode answer) {
    for (JsonNode name : answer.get("forget")) {
      platform.forget(name.asText());
    }
    for (JsonNode name : answer.get("kill")) {
      platform.kill(name.asText());
    }
    for (JsonNode wanted : answer.get("wanted")) {
      hurry();
      Slot slot = new Slot(attempt, wanted.get("incarnation").asLong(), wanted.get("task").asText());
      JsonNode memory = wanted.path("memory_bytes");
      JsonNode cores = wanted.path("cores");
      slot.label = find("labels", slot.getType());
      slot.environment = makeImageEnvironment(slot.getType());
      platform.want(
          slot,
          memory.asLong(job.get("memory_bytes").asLong()),
          (int) Math.ceil(cores.asDouble(job.get("cores").asDouble())),
          wanted.path("gpus").asInt(),
          container -> makeAgentCommand(slot, wanted));
    }
  }

  private static long millis() {
    return System.nanoTime() / 1_000_000;
  }

  // The coordinator decides soon after a report: what it then wants is asked for often.
  private void hurry() {
    eagerUntil = millis() + EAGER_FOR_MILLIS;
  }

  // Beside YARN's classes, which take as long.
  private void preloadTls() {
    Thread thread =
        new Thread(
            () -> {
              try {
                coordinator.getTls();
              } catch (IOException e) {
                System.err.println(e); // the first call fails by it, too
              }
            },
            "TLS");
    thread.setDaemon(true);
    thread.start();
  }

  /** Returns false once the coordinator has ended in order. */
  private boolean keepCoordinator() throws Exception {
    Integer exit = coordinator.getExit();
    if (exit == null) {
      return true;
    }
    if (exit == 0) {
      return false;
    }
    System.err.println("the coordinator ended with code " + exit);
    if (++starts > MAX_STARTS) {
      throw new IllegalStateException("the coordinator ended " + starts + " times without an answer");
    }
    Thread.sleep(starts > 1 ? RESTART_MILLIS : 0);
    coordinator.start();
    return true;
  }

  private int run() throws Exception {
    coordinator.start();
    preloadTls();
    platform = new Platform(attempt, readResources(), readEnvironment(), readPlacement(), readTokens());
    StatusPage page = new StatusPage(coordinator, own.getApplicationAttemptId().getApplicationId());
    platform.start(host, "http://" + host + ":" + page.getPort() + "/");
    hurry();
    boolean isFinal = false;
    while (true) {
      if (!keepCoordinator() || (isFinal && platform.isEmpty())) {
        break;
      }
      if (platform.isShutDown() || !platform.getError().isEmpty()) {
        System.err.println("this attempt ends: " + platform.getError());
        coordinator.stop();
        return 1;
      }
      JsonNode answer = report();
      if (answer != null && answer.get("sequence").asLong() == sequence) {
        starts = 0;
        if (answer.path("superseded").asBoolean()) {
          coordinator.stop();
          return 1;
        }
        obey(answer);
        isFinal = !answer.path("final").asText().isEmpty();
      }
      platform.look();
      synchronized (platform) {
        platform.wait(millis() < eagerUntil ? EAGER_POLL_MILLIS : POLL_MILLIS);
      }
    }
    return finish();
  }

  private int finish() throws InterruptedException {
    while (coordinator.getExit() == null) {
      report(); // it ends once it has heard that no slot runs
      Thread.sleep(POLL_MILLIS);
    }
    String end = coordinator.getEnd();
    boolean succeeded = end.startsWith("succeeded");
    platform.finish(succeeded ? FinalApplicationStatus.SUCCEEDED : FinalApplicationStatus.FAILED, end);
    return 0;
  }

  public static void main(String[] arguments) throws Exception {
    int exit = 1;
    try {
      exit = new ApplicationMaster(new File(arguments[0])).run();
    } catch (Exception e) {
      e.printStackTrace();
    }
    System.exit(exit); // threads of Hadoop's clients would keep it
  }
}
