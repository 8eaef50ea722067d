// Ports for tasks: chosen where nothing else chooses, locked for the machine, held until used.
//
// A TF_CONFIG names a task's port before the task binds it. In between the port must not go to
// anybody: not to an outgoing connection (so it lies outside the ephemeral range), not to another
// job of this machine (so it is locked, by flock on a file a port in a folder that all users share)
// and not to a third program (so a socket is bound to it). That socket does not listen and has
// SO_REUSEADDR: a server that sets SO_REUSEADDR too, as gRPC, Python's socketserver and Java do,
// binds and listens beside it. A server that does not needs ReleaseSocket first.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

struct PortRange {
  int first = 0, last = 0;  // both in
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Where ports are chosen, given the texts of /proc/sys/net/ipv4/ip_local_port_range and
// ip_local_reserved_ports: from 10000 up, neither ephemeral nor set aside for others. Where that
// leaves nothing (a range of 1024 to 65535), what is not set aside from 10000 up: the socket still
// holds the port.
std::vector<PortRange> ChooseFrom(std::string_view ephemeral, std::string_view reserved);

// /tmp/muster-ports, open to all users as /tmp is; a folder of this user's own beside it where that
// cannot be used. Made when missing.
absl::StatusOr<std::string> DefaultPortFolder();

struct PortOptions {
  std::string folder = {};  // of the lock files; empty: DefaultPortFolder()
  // The address the holding socket is bound to: numeric, IPv4 or IPv6; empty: all of both kinds.
  // For a task that inherits the socket it is the address that it serves on.
  std::string address = {};
};

// A port that is this process's until the object ends. Movable; one owner thread.
class HeldPort {
 public:
  // One that is free. UNAVAILABLE when all are taken.
  static absl::StatusOr<HeldPort> Any(const PortOptions& options);
  // This one, 1 to 65535. FAILED_PRECONDITION when it is taken: the message names the holder
  // where /proc tells. A lock file of another user's that cannot be opened does not count.
  static absl::StatusOr<HeldPort> Fixed(int port, const PortOptions& options);

  HeldPort(HeldPort&&) noexcept = default;
  HeldPort& operator=(HeldPort&&) = delete;
  ~HeldPort();

  int port() const { return port_; }
  // The bound socket, for a task of our own that inherits it and listens; -1 when released.
  int socket_fd() const { return socket_.get(); }
  // Frees the port for a server without SO_REUSEADDR. The lock stays.
  void ReleaseSocket() { socket_.Reset(); }
  // Binds again, before such a server's next start. FAILED_PRECONDITION when it is taken.
  absl::Status HoldSocket();

 private:
  HeldPort(int port, std::string address) : port_(port), address_(std::move(address)) {}

  int port_;
  std::string address_;
  std::string lock_path_;
  Descriptor lock_;  // none: its file is another user's
  Descriptor socket_;
};

// Who has a port: "process 71 (python train.py)", "a process of user 1001"; empty: nobody known.
std::string DescribePortHolder(int port);

}  // namespace muster::process
