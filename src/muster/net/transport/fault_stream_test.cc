#include "muster/net/transport/fault_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "muster/net/transport/channel.h"
#include "muster/net/transport/test_streams.h"

namespace muster::net::transport {
namespace {

using process::Deadline;

// One way over each kind of stream, with faults at one of its ends.
class FaultTest : public testing::TestWithParam<Address::Kind> {
 protected:
  struct Outcome {
    absl::Status sent;
    absl::StatusOr<Message> received;
  };

  Outcome Pass(const FaultOptions& at_sender, const FaultOptions& at_receiver, Deadline deadline,
               bool checksum = true) {
    const auto listener = Listener::Listen(folder_.At(GetParam())).value();
    StreamPair pair = Connect(*listener, *interrupt_);
    Channel from(NewFaultStream(std::move(pair.dialed), at_sender).value(), {.checksum = checksum});
    Channel to(NewFaultStream(std::move(pair.accepted), at_receiver).value());
    Outcome outcome;
    std::thread thread([&] {
      outcome.sent = from.Send(1, std::as_bytes(std::span(text_)), deadline, *interrupt_);
    });
    outcome.received = to.Receive(deadline, *interrupt_);
    if (!outcome.received.ok() && !absl::IsDeadlineExceeded(outcome.received.status())) to.Close();
    thread.join();
    return outcome;
  }

  SocketFolder folder_;
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
  const std::string text_ = std::string(1'000'000, 'x');
};

TEST_P(FaultTest, AFlippedBitIsFoundWhereverItIs) {
  for (const uint64_t at : {0, 5, 17, 40, 47, 48, 300'000, 262'144 + 48, 262'144 + 52, 1'000'000}) {
    const Outcome outcome = Pass({}, {.flip_at = at}, TestDeadline());
    EXPECT_EQ(outcome.received.status().code(), absl::StatusCode::kDataLoss)
        << at << outcome.received.status();
  }
}

TEST_P(FaultTest, ACutConnectionIsSeenWithThePeersName) {
  for (const uint64_t at : {0, 1, 48, 100'000, 999'999}) {
    const Outcome outcome = Pass({.cut_at = at}, {}, TestDeadline());
    EXPECT_EQ(outcome.received.status().code(), absl::StatusCode::kUnavailable) << at;
    EXPECT_EQ(outcome.sent.code(), absl::StatusCode::kUnavailable) << at;
  }
}

TEST_P(FaultTest, SilenceEndsWithTheDeadline) {
  const Deadline deadline = Deadline::After(0.1);
  for (const FaultOptions& faults :
       {FaultOptions{.stall_at = 500}, FaultOptions{.half_open_at = 500}}) {
    const Outcome outcome = Pass(faults, {}, deadline);
    EXPECT_EQ(outcome.received.status().code(), absl::StatusCode::kDeadlineExceeded)
        << outcome.received.status();
  }
  // Who writes into a half-open connection learns nothing from it; a stall he notices.
  EXPECT_EQ(Pass({.stall_at = 500}, {}, deadline).sent.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(FaultTest, ShortAndLateIsStillRight) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const FaultOptions faults = {
        .seed = seed, .short_io = 0.9, .delay = 0.0002, .delay_micros = 100};
    const Outcome outcome = Pass(faults, faults, TestDeadline(), seed % 2 == 0);
    ASSERT_TRUE(outcome.received.ok()) << "seed " << seed << outcome.received.status();
    EXPECT_TRUE(std::equal(outcome.received->bytes().begin(), outcome.received->bytes().end(),
                           std::as_bytes(std::span(text_)).begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultTest,
                         testing::Values(Address::Kind::kTcp, Address::Kind::kUnix,
                                         Address::Kind::kSharedMemory));

}  // namespace
}  // namespace muster::net::transport
