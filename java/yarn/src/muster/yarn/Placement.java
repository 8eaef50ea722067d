package muster.yarn;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * On which hosts a job's containers are taken: on any; spread, that is no more on one host than on another; or together
 * on few. Neither is worth waiting for long: after a while in which no container was taken, what was refused is.
 */
final class Placement {
  enum Kind { ANY, SPREAD, TOGETHER }

  private static final long PATIENCE_MILLIS = 5000;

  private final Kind kind;
  private final int tasks;
  private final Map<String, Integer> taken = new HashMap<>(); // live containers by host
  private final Set<String> refused = new HashSet<>();
  private String anchor; // TOGETHER: the host to fill
  private int extra; // SPREAD: containers beyond the fair share of a host
  private boolean relaxed; // TOGETHER: no host but the anchor had room
  private long since; // when it last went on, in milliseconds

  Placement(Kind kind, int tasks) {
    this.kind = kind;
    this.tasks = tasks;
  }

  /** The host that a request names as the only one; null for any. */
  String getOnlyHost() {
    return relaxed ? null : anchor;
  }

  /** Whether a container on that host of a cluster of so many nodes is taken. */
  boolean takes(String host, int nodes) {
    if (kind == Kind.SPREAD) {
      int fair = (tasks + Math.max(nodes, 1) - 1) / Math.max(nodes, 1) + extra;
      return taken.getOrDefault(host, 0) < fair || !refuse(host);
    }
    return kind != Kind.TOGETHER || relaxed || anchor == null || anchor.equals(host);
  }

  private boolean refuse(String host) {
    refused.add(host);
    return true;
  }

  /** Hosts from which no container will be taken for now. */
  Set<String> getRefused() {
    return new HashSet<>(refused);
  }

  void take(String host, long now) {
    taken.merge(host, 1, Integer::sum);
    since = now;
    if (kind == Kind.TOGETHER && (anchor == null || relaxed)) {
      anchor = host;
      relaxed = false;
    }
  }

  void free(String host) {
    taken.merge(host, -1, Integer::sum);
    refused.remove(host);
    if (host.equals(anchor) && taken.values().stream().allMatch(count -> count <= 0)) {
      anchor = null;
    }
  }

  /**
   * Call it now and then, and say whether containers are waited for. Returns true once hosts are taken that were not
   * before: then all requests are to be made anew.
   */
  boolean relax(boolean waits, long now) {
    if (!waits || kind == Kind.ANY || since == 0) {
      since = now;
    }
    if (now - since < PATIENCE_MILLIS) {
      return false;
    }
    since = now;
    boolean is_closed = kind == Kind.SPREAD ? !refused.isEmpty() : anchor != null && !relaxed;
    extra += is_closed ? 1 : 0;
    relaxed = kind == Kind.TOGETHER && is_closed;
    refused.clear();
    return is_closed;
  }
}
