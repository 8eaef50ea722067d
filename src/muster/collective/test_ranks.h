// TestRanks: N ranks as threads of this process, connected by unix sockets. The tests of this layer
// use it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/collective/group.h"
#include "muster/net/transport/counting_stream.h"
#include "muster/net/transport/socket_stream.h"

namespace muster::collective {

class TestRanks {
 public:
  using Traffic = net::transport::Traffic;

  explicit TestRanks(int size, const GroupOptions& options = {}) {
    const auto n = static_cast<size_t>(size);
    traffic_.resize(n);
    std::vector<std::vector<std::unique_ptr<Channel>>> channels(n);
    for (auto& row : channels) row.resize(n);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) {
        int fds[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        channels[a][b] = Wrap(fds[0], b, a);
        channels[b][a] = Wrap(fds[1], a, b);
      }
    }
    for (size_t rank = 0; rank < n; ++rank) {
      interrupts_.push_back(Interrupt::Create().value());
      groups_.push_back(std::make_unique<Group>(static_cast<int>(rank), std::move(channels[rank]),
                                                *interrupts_[rank], options));
    }
  }

  // Runs fn on every rank at once; returns the statuses by rank.
  std::vector<absl::Status> Run(const std::function<absl::Status(Group&)>& fn) {
    std::vector<absl::Status> results(groups_.size());
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < groups_.size(); ++rank) {
      threads.emplace_back([&, rank] { results[rank] = fn(*groups_[rank]); });
    }
    threads.clear();
    return results;
  }
  // Like Run(), and expects every rank to succeed.
  void RunAll(const std::function<absl::Status(Group&)>& fn) {
    for (const absl::Status& status : Run(fn)) EXPECT_TRUE(status.ok()) << status;
  }

  // Moves a rank's group to the caller, for use on its own thread; it must not outlive this object.
  std::unique_ptr<Group> ReleaseGroup(int rank) {
    return std::move(groups_[static_cast<size_t>(rank)]);
  }

  // Closes the rank's sockets, as the other ranks see it when its process dies.
  void Kill(int rank) { groups_[static_cast<size_t>(rank)].reset(); }
  // The traffic that the rank has sent; read it only while no rank runs.
  const Traffic& traffic(int rank) const { return traffic_[static_cast<size_t>(rank)]; }
  Interrupt& interrupt(int rank) { return *interrupts_[static_cast<size_t>(rank)]; }

 private:
  std::unique_ptr<Channel> Wrap(int fd, size_t peer, size_t owner) {
    auto stream =
        net::transport::SocketStream::Create(process::Descriptor(fd), StrCat("unix:<", peer, ">"));
    return std::make_unique<Channel>(std::make_unique<net::transport::CountingStream>(
        std::move(stream).value(), &traffic_[owner]));
  }

  std::vector<Traffic> traffic_;  // by rank; before the channels, which add to it
  std::vector<std::unique_ptr<Interrupt>> interrupts_;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace muster::collective
