import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * The least that an ApplicationMaster can do: it asks for containers and starts a command in each, until it is killed.
 *
 * <p>usage: BareMaster CONTAINERS MEBIBYTES COMMAND
 */
public final class BareMaster extends AMRMClientAsync.AbstractCallbackHandler {
  private final NMClient nodes = NMClient.createNMClient();
  private final String command;

  private BareMaster(String command) {
    this.command = command;
  }

  public static void main(String[] arguments) throws Exception {
    YarnConfiguration configuration = new YarnConfiguration();
    BareMaster master = new BareMaster(arguments[2]);
    master.nodes.init(configuration);
    master.nodes.start();
    AMRMClientAsync<ContainerRequest> manager = AMRMClientAsync.createAMRMClientAsync(200, master);
    manager.init(configuration);
    manager.start();
    manager.registerApplicationMaster("", 0, "");
    Resource resource = Resource.newInstance(Integer.parseInt(arguments[1]), 1);
    for (int i = 0; i < Integer.parseInt(arguments[0]); ++i) {
      manager.addContainerRequest(new ContainerRequest(resource, null, null, Priority.newInstance(1)));
    }
    Thread.sleep(Long.MAX_VALUE);
  }

  @Override
  public void onContainersAllocated(List<Container> given) {
    for (Container container : given) {
      ContainerLaunchContext context =
          ContainerLaunchContext.newInstance(
              Collections.<String, LocalResource>emptyMap(),
              Collections.<String, String>emptyMap(),
              Collections.singletonList(command),
              Collections.<String, ByteBuffer>emptyMap(),
              null,
              null);
      try {
        nodes.startContainer(container, context);
      } catch (Exception e) {
        e.printStackTrace();
        System.exit(1);
      }
    }
  }

  @Override
  public void onContainersCompleted(List<ContainerStatus> ended) {}

  @Override
  public void onContainersUpdated(List<UpdatedContainer> containers) {}

  @Override
  public void onShutdownRequest() {
    System.exit(1);
  }

  @Override
  public void onNodesUpdated(List<NodeReport> updated) {}

  @Override
  public float getProgress() {
    return 0;
  }

  @Override
  public void onError(Throwable problem) {
    problem.printStackTrace();
    System.exit(1);
  }
}
