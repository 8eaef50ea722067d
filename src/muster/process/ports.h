// Ports for tasks: chosen outside the ranges that others use, locked machine-wide, held until used.
//
// A TF_CONFIG names a task's port before the task binds it. In between nothing else may get the
// port: no outgoing connection (so it lies outside the ephemeral range), no other job on this
// machine (so it is locked, by flock on one file per port in a folder that all users share) and no
// other program (so a socket is bound to it). That socket does not listen and has SO_REUSEADDR: a
// server that sets SO_REUSEADDR too, as gRPC, Python's socketserver and Java do, binds and listens
// beside it. A server without SO_REUSEADDR needs ReleaseSocket first.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

struct PortRange {
  int first = 0, last = 0;  // both included
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Where ports are chosen, given the texts of /proc/sys/net/ipv4/ip_local_port_range and
// ip_local_reserved_ports: from 10000 up, neither ephemeral nor reserved. If that leaves nothing (a
// range of 1024 to 65535), all ports from 10000 up that are not reserved: the socket still holds
// the port.
std::vector<PortRange> ChooseFrom(std::string_view ephemeral, std::string_view reserved);

// /tmp/muster-ports, open to all users as /tmp is; if that cannot be used, this user's own folder
// beside it. Made if missing.
absl::StatusOr<std::string> DefaultLockFolder();

struct PortOptions {
  std::string folder = {};  // of the lock files; empty: DefaultLockFolder()
  // The address the holding socket is bound to: numeric, IPv4 or IPv6; empty: all of both kinds.
  // For a task that inherits the socket it is the address on which the task serves.
  std::string address = {};
};

// A port that this process holds until the object is destroyed. Movable; one owner thread.
class HeldPort {
 public:
  // Holds a free port. UNAVAILABLE if all are taken.
  static absl::StatusOr<HeldPort> Any(const PortOptions& options);
  // Holds this port, 1 to 65535. FAILED_PRECONDITION if it is taken: the message names the holder
  // if /proc shows it. Another user's lock file that cannot be opened is ignored.
  static absl::StatusOr<HeldPort> Fixed(int port, const PortOptions& options);

  HeldPort(HeldPort&&) noexcept = default;
  HeldPort& operator=(HeldPort&&) = delete;
  ~HeldPort();

  int port() const { return port_; }
  // The bound socket, for a Muster task that inherits it and listens; -1 when released.
  int socket_fd() const { return socket_.get(); }
  // Frees the port for a server without SO_REUSEADDR. The lock stays.
  void ReleaseSocket() { socket_.Reset(); }
  // Binds again, before such a server's next start. FAILED_PRECONDITION if the port is taken.
  absl::Status HoldSocket();

 private:
  HeldPort(int port, std::string address) : port_(port), address_(std::move(address)) {}

  int port_;
  std::string address_;
  std::string lock_path_;
  Descriptor lock_;  // none: its file belongs to another user
  Descriptor socket_;
};

// Who has a port: "process 71 (python train.py)", "a process of user 1001"; empty: unknown.
std::string DescribePortHolder(int port);

}  // namespace muster::process
