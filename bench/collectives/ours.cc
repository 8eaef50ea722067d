// collectives_ours RANKS shm|tcp|tls|unix: Muster's all-reduce between processes, as replicas use
// it.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/collectives.h"
#include "muster/net/transport/dial.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/protect.h"
#include "one_rank.h"

namespace muster::bench {
namespace {

using collective::Group;
using net::transport::Address;
using net::transport::Channel;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using net::transport::Listener;
using net::transport::Protection;
using net::transport::Stream;

struct Job {
  int ranks = 0;
  Protection protection = {};                             // of both ends
  std::vector<std::unique_ptr<Listener>> listeners = {};  // of each rank, made before the fork
};

void Check(const absl::Status& status) {
  if (!status.ok()) ::bench::Die(std::string(status.message()));
}

// TLS within this machine too.
Protection NewProtection() {
  const net::Credentials authority = net::MakeAuthority("bench", 1).value();
  const auto server = net::MakeCertificate(authority, {.name = "s", .hosts = {"127.0.0.1"}});
  const auto client =
      net::MakeCertificate(authority, {.name = "c", .use = net::CertificateUse::kClient});
  return {.tls = net::transport::Tls::Create(authority.certificate, *server, *client).value(),
          .within_machine = true};
}

process::Deadline Soon() { return process::Deadline::After(60); }

std::unique_ptr<Channel> Open(std::unique_ptr<Stream> stream) {
  return std::make_unique<Channel>(
      std::move(stream), ChannelOptions{.spin_micros = net::transport::DefaultSpinMicros()});
}

// The higher rank dials, and says who it is.
std::vector<std::unique_ptr<Channel>> Connect(const Job& job, int rank, const Interrupt& never) {
  std::vector<std::unique_ptr<Channel>> channels(static_cast<size_t>(job.ranks));
  for (int lower = 0; lower < rank; ++lower) {
    const Address& address = job.listeners[static_cast<size_t>(lower)]->address();
    auto channel = Open(Dial(address, {.protection = job.protection}, Soon(), never).value());
    Check(channel->Send(1, std::as_bytes(std::span(&rank, 1)), Soon(), never));
    channels[static_cast<size_t>(lower)] = std::move(channel);
  }
  const Listener& listener = *job.listeners[static_cast<size_t>(rank)];
  for (int higher = rank + 1; higher < job.ranks; ++higher) {
    auto stream = listener.Open(listener.Accept(Soon(), never).value(), Soon(), never).value();
    if (job.protection.tls != nullptr) {
      stream = ProtectAccepted(std::move(stream), job.protection, Soon(), never).value();
    }
    auto channel = Open(std::move(stream));
    int who = 0;
    Check(channel->ReceiveInto(1, std::as_writable_bytes(std::span(&who, 1)), Soon(), never));
    channels[static_cast<size_t>(who)] = std::move(channel);
  }
  return channels;
}

void RunRank(const Job& job, int rank) {
  const auto never = Interrupt::Create().value();
  Group group(rank, Connect(job, rank, *never), *never);
  ::bench::MeasureSizes(rank, job.ranks,
                        {.all_reduce =
                             [&](float* values, size_t count) {
                               Check(collective::AllReduce(group, {values, count}));
                             },
                         .barrier = [&] { Check(collective::Barrier(group)); }});
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  using muster::net::transport::Address;
  using muster::net::transport::Listener;
  const std::string kind = argc == 3 ? argv[2] : "";
  if (kind != "shm" && kind != "tcp" && kind != "tls" && kind != "unix") {
    bench::Die("usage: collectives_ours RANKS shm|tcp|tls|unix");
  }
  muster::bench::Job job;
  job.ranks = std::atoi(argv[1]);
  if (kind == "tls") job.protection = muster::bench::NewProtection();
  for (int rank = 0; rank < job.ranks; ++rank) {
    Address address = Address::Tcp("127.0.0.1", 0);
    if (kind != "tcp" && kind != "tls") {
      address = {.kind = kind == "shm" ? Address::Kind::kSharedMemory : Address::Kind::kUnix,
                 .path = "@muster-bench-" + std::to_string(getpid()) + "-" + std::to_string(rank)};
    }
    job.listeners.push_back(Listener::Listen(address).value());
  }
  return bench::RunRanks(job.ranks, true, [&](int rank) { muster::bench::RunRank(job, rank); });
}
