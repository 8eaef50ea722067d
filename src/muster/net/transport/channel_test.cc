#include "muster/net/transport/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>
#include <vector>

#include "muster/net/transport/socket_stream.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using testing::HasSubstr;

struct Pair {
  std::unique_ptr<Channel> a, b;
  std::unique_ptr<Interrupt> interrupt = Interrupt::Create().value();
};

std::unique_ptr<Stream> Wrap(int fd, const std::string& name) {
  return SocketStream::Create(process::Descriptor(fd), name).value();
}

Pair MakePair(ChannelOptions a = {}, ChannelOptions b = {}) {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {.a = std::make_unique<Channel>(Wrap(fds[0], "unix:b"), a),
          .b = std::make_unique<Channel>(Wrap(fds[1], "unix:a"), b)};
}

Deadline Soon() { return Deadline::After(60); }

ConstBytes Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string Text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ChannelTest, SendsAndReceives) {
  const Pair pair = MakePair();
  for (const std::string text : {"hello", "", "12345678", "odd"}) {
    ASSERT_TRUE(pair.a->Send(7, Bytes(text), Soon(), *pair.interrupt).ok());
    const absl::StatusOr<Message> got = pair.b->Receive(Soon(), *pair.interrupt);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->type, 7);
    EXPECT_EQ(Text(got->bytes()), text);
  }
}

TEST(ChannelTest, BothExchangeMoreThanTheKernelHolds) {
  for (const bool checksum : {false, true}) {
    const Pair pair = MakePair({.checksum = checksum}, {.checksum = checksum});
    const size_t n = 3'000'001;
    const auto run = [&](Channel* channel, float mine, std::vector<float>* sum) {
      const std::vector<float> out(n, mine);
      sum->assign(n, mine);
      return Channel::Exchange(
          1, *channel, std::as_bytes(std::span(out)), *channel, n * sizeof(float),
          [&](ConstBytes part, size_t offset) {
            EXPECT_EQ(offset % 4 + part.size() % 4, 0u);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % 4, 0u);
            for (size_t i = 0; i < part.size(); i += 4) {
              float x;
              std::memcpy(&x, part.data() + i, 4);
              (*sum)[(offset + i) / 4] += x;
            }
          },
          Soon(), *pair.interrupt);
    };
    std::vector<float> a, b;
    absl::Status other;
    std::thread thread([&] { other = run(pair.b.get(), 2, &b); });
    const absl::Status status = run(pair.a.get(), 1, &a);
    thread.join();
    EXPECT_TRUE(status.ok() && other.ok()) << status << other;
    EXPECT_EQ(a, std::vector<float>(n, 3));
    EXPECT_EQ(b, a);
  }
}

TEST(ChannelTest, AFailureReachesThePeerInTheMidstOfAMessage) {
  for (const bool checksum : {false, true}) {
    const Pair pair = MakePair({.checksum = checksum});
    const std::string large(10 << 20, 'x');
    const absl::Status late = pair.a->Send(1, Bytes(large), Deadline::After(0), *pair.interrupt);
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
    EXPECT_THAT(std::string(late.message()), HasSubstr("unix:b"));
    const absl::Status why = absl::UnavailableError("rank 3 (10.0.0.3:1) is gone");
    std::thread thread([&] { EXPECT_TRUE(pair.a->SendFailure(why, Soon()).ok()); });
    EXPECT_EQ(pair.b->Receive(Soon(), *pair.interrupt).status(), why);
    thread.join();
  }
}

// A frame as a peer that does not play by the rules sends it.
std::string RawFrame(const FrameHeader& header, std::string payload) {
  const FrameHeaderBytes head = EncodeFrameHeader(header);
  const FrameTailBytes tail = EncodeFrameTail(payload.size(), {});
  return Text(head) + payload + Text(ConstBytes(tail).first(FrameTailSize(payload.size())));
}

absl::Status ReceiveRaw(const std::string& wire, ChannelOptions options = {}) {
  const Pair pair = MakePair({}, std::move(options));
  const ConstBytes piece = Bytes(wire);
  EXPECT_EQ(pair.a->stream().Write({&piece, 1}).value_or(0), wire.size());
  pair.a->Close();
  absl::Status status;
  while (status.ok()) status = pair.b->Receive(Soon(), *pair.interrupt).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("unix:a")) << "names the peer";
  EXPECT_EQ(pair.b->Receive(Soon(), *pair.interrupt).status().code(), status.code());
  return status;
}

TEST(ChannelTest, FramesThatWereNotDueAreRefused) {
  const auto error = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  const std::string one = RawFrame({.message_bytes = 4, .payload_bytes = 4}, "four");
  EXPECT_THAT(error(ReceiveRaw(one + one)), HasSubstr("frame 0 came where frame 1 was due"));
  EXPECT_THAT(error(ReceiveRaw(RawFrame({.sequence = 1}, ""))), HasSubstr("frame 1 came where"));
  EXPECT_THAT(error(ReceiveRaw(RawFrame({.message_bytes = 5, .payload_bytes = 4}, "four"))),
              HasSubstr("4 bytes where 5 are left"));
  EXPECT_THAT(error(ReceiveRaw(one, {.max_message_bytes = 3})), HasSubstr("at most 3 are taken"));
  EXPECT_THAT(error(ReceiveRaw(std::string(48, 'x'))), HasSubstr("not with MUF1"));
  const std::string begun =
      RawFrame({.flags = kFrameMore, .message_bytes = 12, .payload_bytes = 8}, "eight...");
  EXPECT_THAT(
      error(ReceiveRaw(
          begun +
          RawFrame({.type = 2, .sequence = 1, .message_bytes = 12, .payload_bytes = 4}, "four"))),
      HasSubstr("type 2"));
  EXPECT_EQ(ReceiveRaw(begun).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReceiveRaw(one.substr(0, 50)).code(), absl::StatusCode::kUnavailable);
}

TEST(ChannelTest, PeersThatDoNotDoTheSameAreTold) {
  const Pair pair = MakePair();
  ASSERT_TRUE(pair.a->Send(1, Bytes("four"), Soon(), *pair.interrupt).ok());
  std::string in(8, '\0');
  const absl::Status status = Channel::Exchange(
      1, *pair.b, {}, *pair.b, std::as_writable_bytes(std::span(in)), Soon(), *pair.interrupt);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 bytes came where one of type 1 and 8"));
}

// The failing rank is in the midst of sending to one peer and of receiving from another; both get
// the cause and not the closed connections.
TEST(ChannelTest, BothNeighboursHearOfTheFirstFailure) {
  const Pair before = MakePair(), after = MakePair();
  const std::string large(10 << 20, 'x');
  std::string in(large.size(), '\0'), theirs(large.size(), '\0');
  absl::Status left, right;
  std::thread sender([&] { left = before.a->Send(1, Bytes(large), Soon(), *after.interrupt); });
  const absl::Status why = absl::DataLossError("rank 1: gradient 7 has no such rows");
  size_t taken = 0;
  const absl::Status broken = Channel::Exchange(
      1, *after.a, Bytes(large), *before.b, large.size(),
      [&](ConstBytes part, size_t) {
        taken += part.size();
        if (taken > large.size() / 2) before.interrupt->Set(why);
      },
      Soon(), *before.interrupt);
  EXPECT_EQ(broken, why);
  std::thread receiver([&] {
    right = after.b->ReceiveInto(1, std::as_writable_bytes(std::span(theirs)), Soon(),
                                 *after.interrupt);
  });
  for (Channel* channel : {before.b.get(), after.a.get()}) {
    EXPECT_TRUE(channel->SendFailure(why, Soon()).ok());
    channel->Close();
  }
  receiver.join();
  EXPECT_EQ(right, why);
  sender.join();
  EXPECT_EQ(left, why);
}

TEST(ChannelTest, AnotherGenerationIsFencedWithBothNamed) {
  const Pair pair = MakePair({.generation = 4}, {.generation = 5});
  ASSERT_TRUE(pair.a->Send(1, {}, Soon(), *pair.interrupt).ok());
  const absl::Status fenced = pair.b->Receive(Soon(), *pair.interrupt).status();
  EXPECT_EQ(fenced.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(fenced.message()), HasSubstr("generation 4"));
  EXPECT_THAT(std::string(fenced.message()), HasSubstr("generation 5"));
}

// Whatever a generation has left on the connection, the next one begins with its own messages.
TEST(ChannelTest, AConnectionIsUsedAgainInALaterGeneration) {
  for (const bool checksum : {false, true}) {
    const Pair pair =
        MakePair({.generation = 4, .checksum = checksum}, {.generation = 4, .checksum = checksum});
    const std::string large(10 << 20, 'x');
    const auto renew = [&](uint64_t generation) {
      absl::Status other;
      std::thread thread([&] { other = pair.b->Renew(generation, Soon(), *pair.interrupt); });
      const absl::Status status = pair.a->Renew(generation, Soon(), *pair.interrupt);
      thread.join();
      EXPECT_TRUE(status.ok() && other.ok()) << status << other;
      EXPECT_EQ(pair.a->generation(), generation);
      for (const auto& [from, to] : {std::pair(&pair.a, &pair.b), std::pair(&pair.b, &pair.a)}) {
        const std::string text = StrCat("in generation ", generation);
        ASSERT_TRUE((*from)->Send(7, Bytes(text), Soon(), *pair.interrupt).ok());
        const absl::StatusOr<Message> got = (*to)->Receive(Soon(), *pair.interrupt);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(Text(got->bytes()), text);
      }
    };
    renew(5);  // nothing is left
    // A message that nobody received, and half of one in each direction.
    ASSERT_TRUE(pair.a->Send(1, Bytes("old"), Soon(), *pair.interrupt).ok());
    for (Channel* channel : {pair.a.get(), pair.b.get()}) {
      EXPECT_FALSE(channel->Send(1, Bytes(large), Deadline::After(0), *pair.interrupt).ok());
    }
    renew(6);
    // A reader within a message that its sender gives up, with and without its failure.
    for (const bool tells : {false, true}) {
      std::string in(large.size(), '\0');
      EXPECT_FALSE(pair.a->Send(1, Bytes(large), Deadline::After(0), *pair.interrupt).ok());
      const absl::Status cut = pair.b->ReceiveInto(1, std::as_writable_bytes(std::span(in)),
                                                   Deadline::After(0.01), *pair.interrupt);
      EXPECT_EQ(cut.code(), absl::StatusCode::kDeadlineExceeded) << cut;
      if (tells) {
        pair.a->SendFailure(absl::AbortedError("over"), Deadline::After(0)).IgnoreError();
      }
      renew(tells ? 8 : 7);
    }
    // Both have heard of the failure.
    const absl::Status why = absl::UnavailableError("rank 3 is gone");
    for (const auto& [from, to] : {std::pair(&pair.a, &pair.b), std::pair(&pair.b, &pair.a)}) {
      ASSERT_TRUE((*from)->SendFailure(why, Soon()).ok());
      EXPECT_FALSE((*from)->Receive(Soon(), *pair.interrupt).ok());
      if (from == &pair.a) {
        EXPECT_EQ((*to)->Receive(Soon(), *pair.interrupt).status(), why);
      }
    }
    renew(9);
  }
}

TEST(ChannelTest, AGenerationThatEndedBeforeItBeganIsPassedOver) {
  const Pair pair = MakePair({.generation = 4}, {.generation = 4});
  // b learns of generation 5, and then, without an answer, of its end.
  const auto over = Interrupt::Create().value();
  std::thread ends([&] { over->Set(absl::AbortedError("generation 5 is over")); });
  const absl::Status passed = pair.b->Renew(5, Soon(), *over);
  EXPECT_EQ(passed.message(), "generation 5 is over");
  ends.join();
  EXPECT_FALSE(pair.b->Send(1, {}, Soon(), *pair.interrupt).ok()) << "before the renewal is done";
  std::thread thread([&] { EXPECT_TRUE(pair.b->Renew(6, Soon(), *pair.interrupt).ok()); });
  EXPECT_TRUE(pair.a->Renew(6, Soon(), *pair.interrupt).ok());
  thread.join();
  ASSERT_TRUE(pair.a->Send(1, Bytes("six"), Soon(), *pair.interrupt).ok());
  EXPECT_EQ(Text(pair.b->Receive(Soon(), *pair.interrupt)->bytes()), "six");
}

TEST(ChannelTest, AConnectionThatCannotBeUsedAgainIsAnError) {
  {
    const Pair closed = MakePair();
    closed.b->Close();
    EXPECT_EQ(closed.a->Renew(1, Soon(), *closed.interrupt).code(), absl::StatusCode::kUnavailable);
  }
  {
    const Pair silent = MakePair();
    EXPECT_EQ(silent.a->Renew(1, Deadline::After(0.01), *silent.interrupt).code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  {  // the peer is in a later generation
    const Pair ahead = MakePair({.generation = 7}, {.generation = 5});
    ASSERT_TRUE(ahead.a->Send(1, Bytes("seven"), Soon(), *ahead.interrupt).ok());
    const absl::Status status = ahead.b->Renew(6, Soon(), *ahead.interrupt);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_FALSE(ahead.b->Renew(8, Soon(), *ahead.interrupt).ok());
  }
  // It is unknown where frames begin: in what is dropped, and in what was read before.
  for (const bool read : {false, true}) {
    const Pair damaged = MakePair();
    const std::string wire = RawFrame({}, "") + std::string(48, 'x');
    const ConstBytes piece = Bytes(wire);
    ASSERT_EQ(damaged.a->stream().Write({&piece, 1}).value_or(0), wire.size());
    while (read && damaged.b->Receive(Soon(), *damaged.interrupt).ok()) continue;
    const absl::Status status = damaged.b->Renew(1, Soon(), *damaged.interrupt);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

TEST(ChannelTest, AnInterruptWakes) {
  const Pair pair = MakePair();
  std::thread thread([&] { pair.interrupt->Set(absl::AbortedError("generation 3 is over")); });
  const absl::Status status = pair.b->Receive(Soon(), *pair.interrupt).status();
  thread.join();
  EXPECT_EQ(status, absl::AbortedError("generation 3 is over"));
}

}  // namespace
}  // namespace muster::net::transport
