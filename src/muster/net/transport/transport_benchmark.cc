// What a message costs between two threads on two cores, each member beside a raw socket: there and
// back, one way with a short answer, and both ways at once as in a step of a collective.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/dial.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/protect.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/tls_stream.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using Kind = Address::Kind;
using Bytes = std::vector<std::byte>;

// With this the thread sleeps only when the peer is away.
constexpr int kLongSpin = 1000;

struct Setting {
  Kind kind;
  int spin_micros = 0;
  bool checksum = false;
  bool tls = false;
};

// Of both ends.
Protection TlsHere() {
  const Credentials authority = MakeAuthority("benchmark", 1).value();
  const auto server = MakeCertificate(authority, {.name = "s", .hosts = {"127.0.0.1"}}).value();
  const auto client =
      MakeCertificate(authority, {.name = "c", .use = CertificateUse::kClient}).value();
  return {.tls = Tls::Create(authority.certificate, server, client).value(),
          .within_machine = true};
}

void BindTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

Deadline Soon() { return Deadline::After(60); }

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> Connect(const Setting& setting,
                                                                    const Interrupt& never) {
  const Kind kind = setting.kind;
  const Protection protection = setting.tls ? TlsHere() : Protection{};
  std::string folder = "/tmp/muster_benchmark_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  Address address = Address::Tcp("127.0.0.1", 0);
  if (kind != Kind::kTcp) address = {.kind = kind, .path = folder + "/s"};
  auto listener = Listener::Listen(address).value();
  std::unique_ptr<Stream> dialed;
  std::thread thread([&] {
    dialed = Dial(listener->address(), {.protection = protection}, Soon(), never).value();
  });
  auto accepted = listener->Open(listener->Accept(Soon(), never).value(), Soon(), never).value();
  if (setting.tls) {
    accepted = ProtectAccepted(std::move(accepted), protection, Soon(), never).value();
  }
  thread.join();
  listener.reset();
  rmdir(folder.c_str());
  return {std::move(dialed), std::move(accepted)};
}

// Runs `peer` on core 1 until it fails, and `here` on core 0 for each iteration.
template <typename Here, typename There>
void Run(benchmark::State& state, const Setting& setting, Here here, There peer) {
  const auto never = Interrupt::Create().value();
  auto [one, other] = Connect(setting, *never);
  const ChannelOptions options = {.checksum = setting.checksum, .spin_micros = setting.spin_micros};
  Channel near(std::move(one), options), far(std::move(other), options);
  const auto size = static_cast<size_t>(state.range(0));
  std::thread thread([&] {
    BindTo(1);
    Bytes out(size), in(size);
    while (peer(far, out, in, *never).ok()) {
    }
  });
  BindTo(0);
  Bytes out(size), in(size);
  for (auto _ : state) {
    const absl::Status status = here(near, out, in, *never);
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  }
  near.Close();
  thread.join();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}

void ThereAndBack(benchmark::State& state, Setting setting) {
  const auto send = [](Channel& channel, const Bytes& out, const Interrupt& never) {
    return channel.Send(1, out, Soon(), never);
  };
  const auto receive = [](Channel& channel, Bytes& in, const Interrupt& never) {
    return channel.ReceiveInto(1, in, Soon(), never);
  };
  Run(
      state, setting,
      [&](Channel& channel, Bytes& out, Bytes& in, const Interrupt& never) {
        MUSTER_RETURN_IF_ERROR(send(channel, out, never));
        return receive(channel, in, never);
      },
      [&](Channel& channel, Bytes& out, Bytes& in, const Interrupt& never) {
        MUSTER_RETURN_IF_ERROR(receive(channel, in, never));
        return send(channel, out, never);
      });
}

void OneWay(benchmark::State& state, Setting setting) {
  Run(
      state, setting,
      [](Channel& channel, Bytes& out, Bytes&, const Interrupt& never) {
        MUSTER_RETURN_IF_ERROR(channel.Send(1, out, Soon(), never));
        return channel.ReceiveInto(2, {}, Soon(), never);
      },
      [](Channel& channel, Bytes&, Bytes& in, const Interrupt& never) {
        MUSTER_RETURN_IF_ERROR(channel.ReceiveInto(1, in, Soon(), never));
        return channel.Send(2, {}, Soon(), never);
      });
}

void BothWays(benchmark::State& state, Setting setting) {
  const auto exchange = [](Channel& channel, Bytes& out, Bytes& in, const Interrupt& never) {
    return Channel::Exchange(1, channel, out, channel, MutableBytes(in), Soon(), never);
  };
  Run(state, setting, exchange, exchange);
}

bool SendAll(int fd, const Bytes& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

bool ReceiveAll(int fd, Bytes* bytes) {
  for (size_t at = 0; at < bytes->size();) {
    const ssize_t n = recv(fd, bytes->data() + at, bytes->size() - at, 0);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::pair<int, int> RawPair(Kind kind) {
  int fds[2] = {-1, -1};
  if (kind != Kind::kTcp) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) std::abort();
    return {fds[0], fds[1]};
  }
  const auto never = Interrupt::Create().value();
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(listener->address().port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fds[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fds[0], reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
  fds[1] = listener->Accept(Soon(), *never).value().socket.Release();
  const int on = 1;
  for (const int fd : fds) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, 0);  // blocking
  }
  return {fds[0], fds[1]};
}

// The kernel's own price, with blocking calls: all comes back, or one byte.
void Raw(benchmark::State& state, Kind kind, bool echo) {
  const auto size = static_cast<size_t>(state.range(0));
  const auto [here, there] = RawPair(kind);
  std::thread thread([&, fd = there] {
    BindTo(1);
    Bytes in(size), out(echo ? size : 1);
    while (ReceiveAll(fd, &in) && SendAll(fd, out)) {
    }
  });
  BindTo(0);
  Bytes out(size), in(echo ? size : 1);
  for (auto _ : state) {
    if (!SendAll(here, out) || !ReceiveAll(here, &in)) state.SkipWithError("closed");
  }
  shutdown(here, SHUT_RDWR);
  thread.join();
  close(here);
  close(there);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}

// A TLS connection from its first byte to the welcome; argument 1: it resumes the session of the
// one before. The CPU time is that of both ends.
void TlsHandshake(benchmark::State& state) {
  const bool resumes = state.range(0) != 0;
  const auto never = Interrupt::Create().value();
  Protection protection = TlsHere();
  for (auto _ : state) {
    if (!resumes) {
      state.PauseTiming();
      protection = TlsHere();
      state.ResumeTiming();
    }
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    std::thread accepts([&] {
      auto inner = SocketStream::Create(process::Descriptor(fds[1]), "near").value();
      TlsStream::Accepted(std::move(inner), protection.tls, Soon(), *never).value();
    });
    auto inner = SocketStream::Create(process::Descriptor(fds[0]), "far").value();
    TlsStream::Dialed(std::move(inner), protection.tls, "127.0.0.1", Soon(), *never).value();
    accepts.join();
  }
}
BENCHMARK(TlsHandshake)->Arg(0)->Arg(1)->MeasureProcessCPUTime()->UseRealTime();

void Small(benchmark::internal::Benchmark* one) {
  one->Arg(8)->Arg(1 << 10)->Arg(64 << 10)->UseRealTime();
}
// As pulls and pushes are.
void Middle(benchmark::internal::Benchmark* one) {
  Small(one);
  one->Arg(512 << 10)->Arg(4 << 20);
}
void Large(benchmark::internal::Benchmark* one) { one->Arg(1 << 20)->Arg(64 << 20)->UseRealTime(); }
void All(benchmark::internal::Benchmark* one) {
  Small(one);
  Large(one);
}

// As parameter servers and their workers wait.
const Setting kUnix = {.kind = Kind::kUnix, .spin_micros = DefaultSpinMicros()};
constexpr Setting kTcp = {.kind = Kind::kTcp},
                  kTcpChecksum = {.kind = Kind::kTcp, .checksum = true},
                  kTls = {.kind = Kind::kTcp, .tls = true}, kUnixSleep = {.kind = Kind::kUnix},
                  kShm = {.kind = Kind::kSharedMemory, .spin_micros = kLongSpin},
                  kShmSleep = {.kind = Kind::kSharedMemory};

BENCHMARK_CAPTURE(Raw, TcpThereAndBack, Kind::kTcp, true)->Apply(Small);
BENCHMARK_CAPTURE(ThereAndBack, Tcp, kTcp)->Apply(Small);
BENCHMARK_CAPTURE(ThereAndBack, Tls, kTls)->Apply(Small);
BENCHMARK_CAPTURE(Raw, UnixThereAndBack, Kind::kUnix, true)->Apply(Middle);
BENCHMARK_CAPTURE(ThereAndBack, Unix, kUnix)->Apply(Middle);
BENCHMARK_CAPTURE(ThereAndBack, UnixSleeping, kUnixSleep)->Apply(Middle);
BENCHMARK_CAPTURE(ThereAndBack, SharedMemorySleeping, kShmSleep)->Apply(Small);
BENCHMARK_CAPTURE(ThereAndBack, SharedMemory, kShm)->Apply(Small);
BENCHMARK_CAPTURE(Raw, TcpOneWay, Kind::kTcp, false)->Apply(Large);
BENCHMARK_CAPTURE(OneWay, Tcp, kTcp)->Apply(Large);
BENCHMARK_CAPTURE(OneWay, TcpChecksum, kTcpChecksum)->Apply(Large);
BENCHMARK_CAPTURE(OneWay, Tls, kTls)->Apply(Large);
BENCHMARK_CAPTURE(Raw, UnixOneWay, Kind::kUnix, false)->Apply(Large);
BENCHMARK_CAPTURE(OneWay, Unix, kUnix)->Apply(Large);
BENCHMARK_CAPTURE(OneWay, SharedMemory, kShm)->Apply(Large);
BENCHMARK_CAPTURE(BothWays, Tcp, kTcp)->Apply(All);
BENCHMARK_CAPTURE(BothWays, TcpChecksum, kTcpChecksum)->Apply(All);
BENCHMARK_CAPTURE(BothWays, Tls, kTls)->Apply(All);
BENCHMARK_CAPTURE(BothWays, Unix, kUnix)->Apply(All);
BENCHMARK_CAPTURE(BothWays, SharedMemory, kShm)->Apply(All);

}  // namespace
}  // namespace muster::net::transport
