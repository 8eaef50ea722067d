// Tests that every Stream must pass (under a Channel: channel_conformance.h). An implementation's
// test has
//   INSTANTIATE_TEST_SUITE_P(Mine, StreamConformance, testing::Values(StreamMember{...}),
//                            StreamMemberName);
// To be included in one source file of a test program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/crc32c.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/test_streams.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {

struct StreamMember {
  std::string name;
  Address::Kind kind;
  // Wraps both ends.
  std::function<std::unique_ptr<Stream>(std::unique_ptr<Stream>)> wrap = {};
  ChannelOptions channel = {};
  Protection protection = {};
};

inline std::string StreamMemberName(const testing::TestParamInfo<StreamMember>& member) {
  return member.param.name;
}

inline void PrintTo(const StreamMember& member, std::ostream* out) { *out << member.name; }

class StreamConformance : public testing::TestWithParam<StreamMember> {
 protected:
  void SetUp() override {
    listener_ = Listener::Listen(folder_.At(GetParam().kind)).value();
    interrupt_ = Interrupt::Create().value();
  }

  StreamPair MakePair(DialOptions options = {}) {
    options.protection = GetParam().protection;
    StreamPair pair = Connect(*listener_, *interrupt_, options);
    return {.dialed = Wrap(std::move(pair.dialed)), .accepted = Wrap(std::move(pair.accepted))};
  }
  // For a peer in a separate process.
  absl::StatusOr<std::unique_ptr<Stream>> DialHere() {
    return Dial(listener_->address(), {.protection = GetParam().protection}, TestDeadline(),
                *interrupt_);
  }
  std::unique_ptr<Stream> AcceptHere() {
    return Wrap(AcceptStream(*listener_, *interrupt_, GetParam().protection));
  }
  static std::unique_ptr<Stream> Wrap(std::unique_ptr<Stream> stream) {
    return GetParam().wrap ? GetParam().wrap(std::move(stream)) : std::move(stream);
  }
  std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeChannels() {
    StreamPair pair = MakePair();
    return {std::make_unique<Channel>(std::move(pair.dialed), GetParam().channel),
            std::make_unique<Channel>(std::move(pair.accepted), GetParam().channel)};
  }

  // Waits until the stream may be readable or writable; OK: try again.
  absl::Status Wait(Stream& stream, bool read, bool write) {
    const Awaited one = {.stream = &stream, .read = read, .write = write};
    return WaitFor({&one, 1}, TestDeadline(), *interrupt_);
  }
  // Everything until the peer closes, at most `most` bytes at a time.
  std::string ReadToEnd(Stream& stream, size_t most = size_t{1} << 30) {
    std::string all;
    while (true) {
      const absl::StatusOr<ConstBytes> some = stream.Peek();
      if (!some.ok()) {
        EXPECT_EQ(some.status().code(), absl::StatusCode::kUnavailable) << some.status();
        return all;
      }
      const size_t n = std::min(some->size(), most);
      all.append(reinterpret_cast<const char*>(some->data()), n);
      stream.Consume(n);
      const absl::Status waited = some->empty() ? Wait(stream, true, false) : absl::OkStatus();
      EXPECT_TRUE(waited.ok()) << waited;
      if (!waited.ok()) return all;
    }
  }
  // Reads until the call fails, which must be with UNAVAILABLE, whatever it was waiting for.
  absl::Status ReadUntilGone(Stream& stream) {
    while (true) {
      const absl::Status status = stream.Peek().status();
      if (!status.ok()) return status;
      MUSTER_RETURN_IF_ERROR(Wait(stream, true, false));
    }
  }
  absl::StatusOr<size_t> WriteText(Stream& stream, std::string_view text) {
    const ConstBytes piece = std::as_bytes(std::span(text));
    return stream.Write({&piece, 1});
  }
  absl::Status WriteAll(Stream& stream, std::string_view text) {
    while (!text.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const size_t went, WriteText(stream, text));
      text.remove_prefix(went);
      if (went == 0) MUSTER_RETURN_IF_ERROR(Wait(stream, false, true));
    }
    return absl::OkStatus();
  }

  static std::string Noise(uint64_t seed, size_t size) {
    std::mt19937_64 random(seed);
    std::string noise(size, '\0');
    for (size_t i = 0; i + 8 <= size; i += 8) {
      const uint64_t word = random();
      std::memcpy(noise.data() + i, &word, 8);
    }
    return noise;
  }

  SocketFolder folder_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Interrupt> interrupt_;
};

// Writes `out` in random pieces and reads `in_size` bytes in random pieces, as they go.
inline absl::StatusOr<uint32_t> Converse(Stream& stream, const std::string& out, size_t in_size,
                                         uint64_t seed, const Interrupt& interrupt) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](size_t most) { return 1 + random() % most; };
  size_t sent = 0, got = 0;
  uint32_t crc = 0;
  while (sent < out.size() || got < in_size) {
    const ConstBytes rest = std::as_bytes(std::span(out)).subspan(sent);
    const ConstBytes first = rest.first(std::min<size_t>(rest.size(), up_to(100)));
    const ConstBytes second =
        rest.subspan(first.size(), std::min(rest.size() - first.size(), up_to(300'000)));
    const std::array<ConstBytes, 2> pieces = {first, second};
    size_t went = 0;
    if (!rest.empty()) {
      MUSTER_ASSIGN_OR_RETURN(went, stream.Write(pieces));
    }
    sent += went;
    size_t came = 0;
    if (got < in_size) {
      MUSTER_ASSIGN_OR_RETURN(const ConstBytes there, stream.Peek());
      if (!there.empty()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(there.data()) % 8, got % 8);
      }
      came = up_to(4) == 1 ? std::min<size_t>(there.size(), up_to(50'000)) : there.size();
      crc = ExtendChecksum(crc, there.first(came));
      stream.Consume(came);
    }
    got += came;
    if (went + came > 0) continue;
    const Awaited one = {.stream = &stream, .read = got < in_size, .write = sent < out.size()};
    MUSTER_RETURN_IF_ERROR(WaitFor({&one, 1}, TestDeadline(), interrupt));
  }
  return crc;
}

TEST_P(StreamConformance, CarriesEveryByteBothWaysAtOnce) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(StrCat("seed ", seed));
  StreamPair pair = MakePair();
  const std::string there = Noise(seed, 9'000'001), back = Noise(seed + 1, 7'000'003);
  absl::StatusOr<uint32_t> other;
  std::thread thread(
      [&] { other = Converse(*pair.accepted, back, there.size(), seed + 2, *interrupt_); });
  const absl::StatusOr<uint32_t> one =
      Converse(*pair.dialed, there, back.size(), seed + 3, *interrupt_);
  thread.join();
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(*one, Crc32c(back));
  EXPECT_EQ(*other, Crc32c(there));
}

TEST_P(StreamConformance, AReaderThatDoesNotReadStopsTheWriter) {
  StreamPair pair = MakePair();
  constexpr size_t kBound = size_t{64} << 20, kLast = 4;
  const std::string noise = Noise(1, kBound + 8);
  const std::string_view all = noise;
  size_t sent = 0;
  for (int idle = 0; idle < 100 && sent < kBound;) {
    const absl::StatusOr<size_t> went = WriteText(*pair.dialed, all.substr(sent, kBound - sent));
    ASSERT_TRUE(went.ok()) << went.status();
    sent += *went;
    if (*went > 0) idle = 0;
    if (*went > 0) continue;
    const Awaited one = {.stream = pair.dialed.get(), .write = true};
    ++idle;  // TCP and delays may find room a little later
    WaitFor({&one, 1}, process::Deadline::After(0.001), *interrupt_).IgnoreError();
  }
  EXPECT_LT(sent, kBound);
  EXPECT_GT(sent, 0u);
  std::thread thread(
      [&] { EXPECT_TRUE(ReadToEnd(*pair.accepted) == all.substr(0, sent + kLast)); });
  EXPECT_TRUE(WriteAll(*pair.dialed, all.substr(sent, kLast)).ok());
  pair.dialed->Close();
  thread.join();
}

// The last piece finds room for a part of it only. A kernel that encrypts has taken it, too.
TEST_P(StreamConformance, WhatWasWrittenArrivesThoughTheWriterClosesAtOnce) {
  StreamPair pair = MakePair();
  const std::shared_ptr<const Tls> tls = GetParam().protection.tls;
  const bool takes_parts = tls == nullptr || tls->options().by_kernel;
  constexpr size_t kPiece = size_t{16} << 10;
  const std::string noise = Noise(1, size_t{64} << 20);
  const std::string_view all = noise;
  size_t sent = 0, went = kPiece;
  const auto write = [&] {
    went = WriteText(*pair.dialed, all.substr(sent, kPiece)).value_or(0);
    sent += went;
    return sent < all.size() - kPiece;
  };
  std::string got;
  const auto read = [&] {
    const ConstBytes some = pair.accepted->Peek().value();
    got.append(reinterpret_cast<const char*>(some.data()), some.size());
    pair.accepted->Consume(some.size());
  };
  while (went > 0) ASSERT_TRUE(write());
  while (went == 0) {
    read();
    ASSERT_TRUE(write());
  }
  while ((went == kPiece) == takes_parts) {
    if (!takes_parts) read();
    ASSERT_TRUE(write());
  }
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    got += ReadToEnd(*pair.accepted);
  });
  pair.dialed->Close();
  thread.join();
  EXPECT_EQ(got.size(), sent);
  EXPECT_TRUE(got == all.substr(0, sent));
}

TEST_P(StreamConformance, ACloseIsSeenAfterTheLastByte) {
  for (const std::string text : {"", "a", "four", "some text"}) {
    for (const bool dialed_closes : {true, false}) {
      StreamPair pair = MakePair();
      if (!dialed_closes) std::swap(pair.dialed, pair.accepted);
      ASSERT_TRUE(WriteAll(*pair.dialed, text).ok());
      pair.dialed->Close();
      EXPECT_EQ(ReadToEnd(*pair.accepted, 3), text);
      const absl::Status gone = pair.accepted->Peek().status();
      EXPECT_THAT(std::string(gone.message()), testing::HasSubstr(pair.accepted->peer()));
      EXPECT_EQ(pair.dialed->Peek().status().code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(WriteText(*pair.dialed, "x").status().code(), absl::StatusCode::kUnavailable);
    }
  }
}

TEST_P(StreamConformance, ACloseWakesTheWriterToo) {
  StreamPair pair = MakePair();
  std::thread thread([&] { pair.accepted->Close(); });
  absl::Status status;
  while (status.ok()) status = WriteAll(*pair.dialed, Noise(1, 1 << 20));
  thread.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_P(StreamConformance, AKilledPeerIsSeen) {
  const pid_t child = fork();
  if (child == 0) {
    auto stream = DialHere();
    if (!stream.ok() || !WriteAll(**stream, "here").ok()) _exit(1);
    while (true) pause();
  }
  const std::unique_ptr<Stream> stream = AcceptHere();
  size_t came = 0;
  while (came < 4) {
    const absl::StatusOr<ConstBytes> some = stream->Peek();
    ASSERT_TRUE(some.ok()) << some.status();
    came += some->size();
    stream->Consume(some->size());
    if (some->empty()) {
      ASSERT_TRUE(Wait(*stream, true, false).ok());
    }
  }
  std::thread killer([&] { kill(child, SIGKILL); });
  EXPECT_EQ(ReadUntilGone(*stream).code(), absl::StatusCode::kUnavailable);
  killer.join();
  waitpid(child, nullptr, 0);
}

// SIGSTOP: the peer is silent until the deadline. SIGKILL: the peer is gone.
TEST_P(StreamConformance, APeerIsStoppedOrKilledInTheMidstOfExchanges) {
  std::string mine = Noise(1, 3'000'000), theirs(mine.size(), '\0');
  const auto exchange = [&](Channel& channel, process::Deadline deadline) {
    return Channel::Exchange(1, channel, std::as_bytes(std::span(mine)), channel,
                             std::as_writable_bytes(std::span(theirs)), deadline, *interrupt_);
  };
  for (const int signal : {SIGSTOP, SIGKILL}) {
    const pid_t child = fork();
    if (child == 0) {
      auto stream = DialHere();
      if (!stream.ok()) _exit(1);
      Channel channel(*std::move(stream), GetParam().channel);
      while (exchange(channel, TestDeadline()).ok()) {
      }
      _exit(0);
    }
    Channel channel(AcceptHere(), GetParam().channel);
    EXPECT_TRUE(exchange(channel, TestDeadline()).ok());
    std::thread sender([&] { kill(child, signal); });
    absl::Status status;
    while (status.ok()) {
      status =
          exchange(channel, signal == SIGSTOP ? process::Deadline::After(0.3) : TestDeadline());
    }
    sender.join();
    EXPECT_EQ(status.code(), signal == SIGSTOP ? absl::StatusCode::kDeadlineExceeded
                                               : absl::StatusCode::kUnavailable)
        << status;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST_P(StreamConformance, ManyConnectionsLeaveNoDescriptor) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const DialOptions small = {.shared_memory = {.ring_bytes = kMinRingBytes}};
  { const StreamPair first = MakePair(small); }
  const auto before = descriptors();
  const int connections = GetParam().protection.tls == nullptr ? 2000 : 200;
  for (int i = 0; i < connections; ++i) {
    const StreamPair pair = MakePair(small);
    if (i % 2 == 0) pair.dialed->Close();
  }
  EXPECT_EQ(descriptors(), before);
}

}  // namespace muster::net::transport
