// What the membership of many replicas costs the chief, which hosts it: a child process is the
// chief, and this one has all members, each with its own connection and thread, as replicas have.
// Prints
// {"join_seconds": S, "core_percent": P}: until the last member has its view, and the CPU time of
// the chief's process over the next WATCH seconds.
//
// usage: membership_load MEMBERS WATCH FOLDER

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/strings.h"
#include "muster/membership/host.h"
#include "muster/membership/membership.h"
#include "muster/net/transport/acceptor.h"
#include "muster/process/proc.h"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

job::TaskId GetTask(int rank) {
  if (rank == 0) return {job::TaskType::kChief, 0};
  return {job::TaskType::kWorker, rank - 1};
}

template <class Value>
Value Must(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "membership_load: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

double GetCpuSeconds(pid_t pid) {
  const auto stat = process::ReadStat(pid);
  return stat ? stat->cpu_seconds : 0;
}

void RunChief(int members, const net::transport::Address& address, const net::Token& key) {
  const SystemClock clock;
  membership::RosterSpec roster;
  for (int rank = 0; rank < members; ++rank) roster.tasks.push_back(GetTask(rank));
  const auto host = Must(membership::Host::Start(std::move(roster), clock));
  net::transport::AcceptorOptions options = {.key = key};
  options.max_pending = members;
  options.self = [] { return net::transport::Identity{.job = "load", .role = "chief"}; };
  options.on_peer = [&](const net::transport::Peer& peer,
                        std::unique_ptr<net::transport::Stream> stream) {
    host->Serve(peer, std::move(stream));
  };
  const auto acceptor = Must(net::transport::Acceptor::StartAt(address, std::move(options)));
  pause();
}

int Run(int members, double watch, const std::string& folder) {
  const net::transport::Address address = {.kind = net::transport::Address::Kind::kUnix,
                                           .path = folder + "/chief"};
  const net::Token key = Must(net::Token::Make());
  const pid_t chief = fork();
  if (chief == 0) RunChief(members, address, key);
  const auto begin = Clock::now();
  std::vector<std::unique_ptr<membership::Membership>> all;
  std::vector<std::jthread> joins;
  for (int rank = 0; rank < members; ++rank) {
    all.push_back(Must(membership::Membership::Start(
        {.job = "load",
         .id = {GetTask(rank), 1},
         .address = StrCat("tcp://job-worker-", rank, ".namespace.svc:2222"),
         .host = address},
        key)));
  }
  for (auto& member : all) {
    joins.emplace_back([&member] { Must(member->Join({.step = 0}, std::nullopt)); });
  }
  joins.clear();
  const double joined = std::chrono::duration<double>(Clock::now() - begin).count();
  const double before = GetCpuSeconds(chief);
  std::this_thread::sleep_for(std::chrono::duration<double>(watch));
  const double used = GetCpuSeconds(chief) - before;
  std::printf("{\"join_seconds\": %.3f, \"core_percent\": %.3f}\n", joined, 100 * used / watch);
  std::fflush(stdout);
  kill(chief, SIGKILL);
  waitpid(chief, nullptr, 0);
  _exit(0);  // members would wait for their chief
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: membership_load MEMBERS WATCH FOLDER\n", stderr);
    return 2;
  }
  return muster::Run(std::atoi(argv[1]), std::atof(argv[2]), argv[3]);
}
