package muster.yarn;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.webapp.util.WebAppUtils;

/**
 * What YARN's web page shows as the application's: the coordinator's page about the job, for those whom the
 * ResourceManager's proxy lets through. Who asks by another way is sent to that proxy. It has no secret and changes
 * nothing.
 */
final class StatusPage {
  private static final int THREADS = 2;
  private static final long PROXY_MILLIS = 60000; // the time for which a proxy's addresses are known

  private final Coordinator coordinator;
  private final ApplicationId application;
  private final HttpServer server;
  private final List<String> proxies; // HOST:PORT
  private final String scheme;
  private Set<InetAddress> allowed = new HashSet<>();
  private long resolved;

  StatusPage(Coordinator coordinator, ApplicationId application) throws IOException {
    this.coordinator = coordinator;
    this.application = application;
    YarnConfiguration configuration = new YarnConfiguration();
    proxies = new ArrayList<>(WebAppUtils.getProxyHostsAndPortsForAmFilter(configuration));
    scheme = WebAppUtils.getHttpSchemePrefix(configuration);
    System.setProperty("sun.net.httpserver.maxReqTime", "10"); // seconds: who sends half a request is cut off
    System.setProperty("sun.net.httpserver.maxRspTime", "10");
    server = HttpServer.create(new InetSocketAddress(0), 0);
    ExecutorService threads =
        Executors.newFixedThreadPool(
            THREADS,
            work -> {
              Thread thread = new Thread(work, "status page");
              thread.setDaemon(true);
              return thread;
            });
    server.setExecutor(threads);
    server.createContext("/", this::answer);
    server.start();
  }

  int getPort() {
    return server.getAddress().getPort();
  }

  private void answer(HttpExchange exchange) throws IOException {
    try {
      String path = exchange.getRequestURI().getPath();
      if (!isAllowed(exchange.getRemoteAddress().getAddress())) {
        String proxy = proxies.isEmpty() ? "" : scheme + proxies.get(0);
        exchange.getResponseHeaders().set("Location", proxy + "/proxy/" + application + path);
        send(exchange, HttpURLConnection.HTTP_MOVED_TEMP, "text/plain", new byte[0]);
      } else if (!exchange.getRequestMethod().equals("GET")) {
        send(exchange, HttpURLConnection.HTTP_BAD_METHOD, "text/plain", new byte[0]);
      } else if (path.equals("/")) {
        send(exchange, HttpURLConnection.HTTP_OK, "text/html; charset=utf-8", coordinator.get("/v1/page"));
      } else if (path.equals("/status.json")) {
        send(exchange, HttpURLConnection.HTTP_OK, "application/json", coordinator.get("/v1/status"));
      } else {
        send(exchange, HttpURLConnection.HTTP_NOT_FOUND, "text/plain", new byte[0]);
      }
    } catch (IOException e) {
      byte[] why = "The job's coordinator does not answer; it is started again.\n".getBytes(StandardCharsets.UTF_8);
      send(exchange, HttpURLConnection.HTTP_UNAVAILABLE, "text/plain", why);
    } finally {
      exchange.close();
    }
  }

  private static void send(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
    try (OutputStream out = exchange.getResponseBody()) {
      out.write(body);
    }
  }

  private synchronized boolean isAllowed(InetAddress address) {
    long now = System.currentTimeMillis();
    if (now - resolved > PROXY_MILLIS) {
      allowed = new HashSet<>();
      for (String proxy : proxies) {
        try {
          allowed.addAll(Arrays.asList(InetAddress.getAllByName(proxy.substring(0, proxy.lastIndexOf(':')))));
        } catch (UnknownHostException e) {
          System.err.println("the proxy " + proxy + " is not known: " + e.getMessage());
        }
      }
      resolved = now;
    }
    return allowed.contains(address);
  }
}
