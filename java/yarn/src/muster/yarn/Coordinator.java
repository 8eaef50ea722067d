package muster.yarn;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.List;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * The job's coordinator, a child of this process: it holds the child's standard input, at whose end the child ends. The
 * child writes its URL as the first line, and "final PHASE MESSAGE" before it ends.
 */
final class Coordinator {
  private static final int ANSWER_MILLIS = 10000;
  private static final int BUFFER_BYTES = 8192;

  private final List<String> command;
  private final File folder;
  private final String token;
  private final String configuration; // Hadoop's, of the submitter
  private final File keytab; // may not exist
  private final ObjectMapper mapper = new ObjectMapper();
  private Process process;
  private Thread reader;
  private SSLContext tls; // null before getTls()
  private volatile String url = "";
  private volatile String end = "";

  Coordinator(List<String> command, File folder) throws IOException {
    this.command = command;
    this.folder = folder;
    this.keytab = new File(folder, "keytab");
    this.configuration = new File(folder, "conf").getAbsolutePath();
    this.token = new String(Files.readAllBytes(Paths.get(folder.getPath(), "token")), StandardCharsets.US_ASCII).trim();
  }

  /** To load Java's TLS takes some time: a thread of its own may call it before the first call needs it. */
  synchronized SSLContext getTls() throws IOException {
    if (tls == null) {
      try (InputStream text = Files.newInputStream(Paths.get(folder.getPath(), "ca.pem"))) {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        trusted.setCertificateEntry("job", CertificateFactory.getInstance("X.509").generateCertificate(text));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext made = SSLContext.getInstance("TLS");
        made.init(null, trust.getTrustManagers(), null);
        tls = made;
      } catch (GeneralSecurityException e) {
        throw new IOException("the job's authority cannot be used: " + e, e);
      }
    }
    return tls;
  }

  void start() throws IOException {
    url = "";
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().put("HADOOP_CONF_DIR", configuration);
    if (keytab.exists()) {
      builder.environment().put("KRB5_CLIENT_KTNAME", keytab.getAbsolutePath());
      builder.environment().put("KRB5CCNAME", new File(keytab.getParentFile(), "ticket").getAbsolutePath());
    }
    process = builder.start();
    Process started = process;
    reader = new Thread(() -> read(started), "coordinator's output");
    reader.setDaemon(true);
    reader.start();
  }

  private void read(Process started) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(started.getInputStream(), StandardCharsets.UTF_8))) {
      String line;
      while ((line = lines.readLine()) != null) {
        if (line.startsWith("https://")) {
          url = line;
        } else if (line.startsWith("final ")) {
          end = line.substring("final ".length());
        }
      }
    } catch (IOException e) {
      System.err.println("the coordinator's output cannot be read: " + e);
    }
  }

  /** Null while it runs. */
  Integer getExit() {
    return process.isAlive() ? null : Integer.valueOf(process.exitValue());
  }

  /** "" until it listens. */
  String getUrl() {
    return url;
  }

  /** "succeeded" or "failed WHY", once it has ended; "" if it has not said that. */
  String getEnd() throws InterruptedException {
    reader.join(ANSWER_MILLIS);
    return end;
  }

  void stop() {
    process.destroyForcibly();
  }

  private HttpsURLConnection open(String path) throws IOException {
    String at = url;
    if (at.isEmpty()) {
      throw new IOException("the coordinator does not listen yet");
    }
    // The child is on this machine, whatever the name is by which others reach it.
    int port = new URL(at).getPort();
    HttpsURLConnection call = (HttpsURLConnection) new URL("https://127.0.0.1:" + port + path).openConnection();
    call.setSSLSocketFactory(getTls().getSocketFactory());
    call.setConnectTimeout(ANSWER_MILLIS);
    call.setReadTimeout(ANSWER_MILLIS);
    call.setRequestProperty("Authorization", "Bearer " + token);
    return call;
  }

  byte[] get(String path) throws IOException {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    try (InputStream in = open(path).getInputStream()) {
      byte[] part = new byte[BUFFER_BYTES];
      for (int size = in.read(part); size >= 0; size = in.read(part)) {
        body.write(part, 0, size);
      }
    }
    return body.toByteArray();
  }

  /** Null if no answer came. */
  JsonNode post(String path, JsonNode body) {
    try {
      HttpsURLConnection call = open(path);
      call.setRequestMethod("POST");
      call.setDoOutput(true);
      call.setRequestProperty("Content-Type", "application/json");
      try (OutputStream out = call.getOutputStream()) {
        mapper.writeValue(out, body);
      }
      if (call.getResponseCode() != HttpURLConnection.HTTP_OK) {
        System.err.println("the coordinator answers " + call.getResponseCode() + " to " + path);
        return null;
      }
      try (InputStream in = call.getInputStream()) {
        return mapper.readTree(in);
      }
    } catch (IOException e) {
      return null; // it is being started, or has ended: the caller looks
    }
  }
}
