// The part of the suite that sends messages: a Channel over each Stream of stream_conformance.h.
#pragma once

#include "muster/net/transport/stream_conformance.h"

namespace muster::net::transport {

TEST_P(StreamConformance, MessagesOfAllSizesPassBothWays) {
  auto [a, b] = MakeChannels();
  const process::Deadline deadline = TestDeadline();
  const std::string noise = Noise(5, size_t{64} << 20);
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{4096}, kMaxFramePayload - 1,
        kMaxFramePayload, kMaxFramePayload + 1, size_t{3'000'001}, noise.size()}) {
    if (GetParam().wrap && size == noise.size()) continue;  // faults go byte by byte
    const std::string_view out = std::string_view(noise).substr(0, size);
    std::string parts(size, '\0'), whole(size, '\0');
    absl::Status other;
    std::thread thread([&, &to = *b] {
      other = Channel::Exchange(3, to, std::as_bytes(std::span(out)), to,
                                std::as_writable_bytes(std::span(whole)), deadline, *interrupt_);
    });
    const absl::Status one = Channel::Exchange(
        3, *a, std::as_bytes(std::span(out)), *a, size,
        [&](ConstBytes part, size_t offset) {
          EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % 4, 0u);
          EXPECT_EQ(offset % 4, 0u);
          EXPECT_TRUE(part.size() % 4 == 0 || offset + part.size() == size);
          std::memcpy(parts.data() + offset, part.data(), part.size());
        },
        deadline, *interrupt_);
    thread.join();
    ASSERT_TRUE(one.ok() && other.ok()) << size << one << other;
    EXPECT_TRUE(parts == out && whole == out) << size;
  }
}

// As a server that works for long and tells a worker, now and then, that it is alive.
TEST_P(StreamConformance, ASenderThatLooksForAnEndNoticesIt) {
  auto [a, b] = MakeChannels();
  b->Close();
  // The peer's machine may need a moment to answer what comes after its end; but not as many
  // messages as fill a ring.
  absl::Status sent;
  for (int i = 0; i < 1000 && sent.ok(); ++i) {
    a->LookForClose();
    sent = a->Send(1, {}, TestDeadline(), *interrupt_);
    if (sent.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable) << sent;
}

TEST_P(StreamConformance, ARingOfThreeExchangesWithoutWaitingForEachOther) {
  constexpr int kRanks = 3;
  std::vector<std::unique_ptr<Channel>> to(kRanks), from(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::tie(to[rank], from[(rank + 1) % kRanks]) = MakeChannels();
  }
  const size_t size = 2'000'000;
  std::vector<std::string> got(kRanks, std::string(size, '\0'));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string mine = Noise(rank, size);
      const absl::Status status = Channel::Exchange(
          1, *to[rank], std::as_bytes(std::span(mine)), *from[rank],
          std::as_writable_bytes(std::span(got[rank])), TestDeadline(), *interrupt_);
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(got[rank] == Noise((rank + kRanks - 1) % kRanks, size)) << rank;
  }
}

TEST_P(StreamConformance, ADeadlineIsKeptAndTheChannelContinues) {
  auto [a, b] = MakeChannels();
  const absl::Status late = a->Receive(process::Deadline::After(0.01), *interrupt_).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  EXPECT_THAT(std::string(late.message()), testing::HasSubstr(a->peer()));
  ASSERT_TRUE(b->Send(1, {}, TestDeadline(), *interrupt_).ok());
  EXPECT_TRUE(a->Receive(TestDeadline(), *interrupt_).ok());
  // A writer whose peer does not read; part of the message was written, so the channel is broken.
  const std::string large = Noise(1, size_t{64} << 20);
  const absl::Status full =
      a->Send(1, std::as_bytes(std::span(large)), process::Deadline::After(0.2), *interrupt_);
  EXPECT_EQ(full.code(), absl::StatusCode::kDeadlineExceeded) << full;
  EXPECT_EQ(a->Receive(TestDeadline(), *interrupt_).status().code(), full.code());
}

TEST_P(StreamConformance, AnInterruptWakesReaderAndWriter) {
  auto [a, b] = MakeChannels();
  const absl::Status why = absl::AbortedError("generation 4 is over: worker 2 is gone");
  const std::string large = Noise(1, size_t{64} << 20);
  std::thread writer([&, &to = *a] {
    EXPECT_EQ(to.Send(1, std::as_bytes(std::span(large)), TestDeadline(), *interrupt_), why);
  });
  auto [c, d] = MakeChannels();
  std::thread reader(
      [&, &from = *c] { EXPECT_EQ(from.Receive(TestDeadline(), *interrupt_).status(), why); });
  interrupt_->Set(why);
  interrupt_->Set(absl::UnavailableError("a later reason does not count"));
  writer.join();
  reader.join();
}

TEST_P(StreamConformance, APeersFailureIsReadBeforeItsBrokenPipe) {
  auto [a, b] = MakeChannels();
  const absl::Status why = absl::UnavailableError("worker 3 (tcp://10.0.0.3:1) is gone");
  ASSERT_TRUE(b->SendFailure(why, TestDeadline()).ok());
  b->Close();
  const std::string large = Noise(1, size_t{64} << 20);
  EXPECT_EQ(a->Send(1, std::as_bytes(std::span(large)), TestDeadline(), *interrupt_), why);
}

}  // namespace muster::net::transport
