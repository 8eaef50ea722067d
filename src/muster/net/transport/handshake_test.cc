#include "muster/net/transport/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "muster/net/transport/acceptor.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/fault_stream.h"
#include "muster/net/transport/handshake_message.h"
#include "muster/net/transport/test_streams.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using testing::HasSubstr;
using testing::Not;

Token Key(char digit) { return Token::Parse(std::string(64, digit), "test").value(); }

Identity Worker(uint32_t index, std::string job = "clicks") {
  return {
      .job = std::move(job), .role = "worker", .index = index, .incarnation = 5, .generation = 9};
}

struct Outcome {
  absl::StatusOr<Peer> dialed, accepted;
};

class HandshakeTest : public testing::Test {
 protected:
  Outcome Shake(const Token& dial_key, const Identity& dialer, const Token& accept_key,
                const Identity& accepting, const Admit& admit = {}) {
    StreamPair pair = Connect(*listener_, *interrupt_);
    return Shake(pair, dial_key, dialer, accept_key, accepting, admit);
  }
  Outcome Shake(StreamPair& pair, const Token& dial_key, const Identity& dialer,
                const Token& accept_key, const Identity& accepting, const Admit& admit = {}) {
    Outcome outcome;
    std::thread thread([&] {
      outcome.accepted = AcceptHandshake(*pair.accepted, accept_key, accepting, admit,
                                         TestDeadline(), *interrupt_);
    });
    outcome.dialed =
        DialHandshake(*pair.dialed, dial_key, dialer, "ring", TestDeadline(), *interrupt_);
    if (!outcome.dialed.ok()) pair.dialed->Close();
    thread.join();
    return outcome;
  }
  void Shake(StreamPair& pair, const Token& key) {
    const Outcome outcome = Shake(pair, key, Worker(1), key, Worker(0));
    EXPECT_TRUE(outcome.dialed.ok() && outcome.accepted.ok()) << outcome.dialed.status();
  }
  // What the accepting side says to these bytes, after which nothing comes.
  absl::Status AcceptBytes(const std::string& bytes) {
    StreamPair pair = Connect(*listener_, *interrupt_);
    const ConstBytes piece = std::as_bytes(std::span(bytes));
    EXPECT_EQ(pair.dialed->Write({&piece, 1}).value_or(0), bytes.size());
    pair.dialed->Close();
    return AcceptHandshake(*pair.accepted, Key('a'), Worker(0), {}, TestDeadline(), *interrupt_)
        .status();
  }

  SocketFolder folder_;
  const std::unique_ptr<Listener> listener_ =
      Listener::Listen(folder_.At(Address::Kind::kUnix)).value();
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

TEST_F(HandshakeTest, EachSideLearnsWhoTheOtherIs) {
  const Outcome outcome = Shake(Key('a'), Worker(1), Key('a'), Worker(0));
  ASSERT_TRUE(outcome.dialed.ok() && outcome.accepted.ok()) << outcome.dialed.status();
  EXPECT_EQ(outcome.dialed->identity, Worker(0));
  EXPECT_EQ(outcome.accepted->identity, Worker(1));
  EXPECT_EQ(outcome.accepted->service, "ring");
}

// A reader of frames takes whole floats, and a ring of shared memory ends somewhere: were a message
// to lie across its end by one byte, neither side would ever continue.
TEST_F(HandshakeTest, MessagesAfterItAreAlignedHoweverLongTheNamesWere) {
  constexpr size_t kBytes = size_t{3} << 20;
  const std::vector<std::byte> message(kBytes, std::byte{7});
  for (const auto kind :
       {Address::Kind::kSharedMemory, Address::Kind::kUnix, Address::Kind::kTcp}) {
    const auto listener = Listener::Listen(folder_.At(kind, "aligned")).value();
    for (size_t length = 1; length <= 8; ++length) {
      const Identity self = Worker(0, std::string(length, 'j'));
      StreamPair pair = Connect(*listener, *interrupt_);
      absl::Status sent;
      std::thread thread([&] {
        sent = DialHandshake(*pair.dialed, Key('a'), self, "ring", TestDeadline(), *interrupt_)
                   .status();
        Channel channel(std::move(pair.dialed), {});
        if (sent.ok()) sent = channel.Send(1, message, TestDeadline(), *interrupt_);
      });
      const auto peer =
          AcceptHandshake(*pair.accepted, Key('a'), self, {}, TestDeadline(), *interrupt_);
      EXPECT_TRUE(peer.ok()) << peer.status();
      Channel channel(std::move(pair.accepted), {});
      size_t got = 0;
      const auto take = [&](ConstBytes part, size_t offset) {
        EXPECT_EQ(offset, got);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % 4, 0U);
        EXPECT_EQ(part.size() % 4, 0U);
        got += part.size();
      };
      const absl::Status received =
          channel.ReceiveParts(1, kBytes, take, TestDeadline(), *interrupt_);
      thread.join();
      EXPECT_TRUE(sent.ok()) << sent;
      EXPECT_TRUE(received.ok()) << received;
      EXPECT_EQ(got, kBytes);
    }
  }
}

// Where one end takes the other for a neighbour, through a forwarded port say, and the other not.
TEST_F(HandshakeTest, ChecksumsAreOnAtBothEndsWhereEitherWantsThem) {
  for (const int wishes : {0, 1, 2, 3}) {
    StreamPair pair = Connect(*listener_, *interrupt_);
    EXPECT_FALSE(pair.dialed->wants_checksums() || pair.accepted->wants_checksums());
    pair.dialed->set_wants_checksums((wishes & 1) != 0);
    pair.accepted->set_wants_checksums((wishes & 2) != 0);
    Shake(pair, Key('a'));
    EXPECT_EQ(pair.dialed->wants_checksums(), wishes != 0) << wishes;
    EXPECT_EQ(pair.accepted->wants_checksums(), wishes != 0) << wishes;
  }
}

TEST_F(HandshakeTest, WhereChecksumsAreAgreedOnDamageIsFoundAndNothingGoesWithoutThem) {
  const std::string text = "gradients";
  const auto pass = [&](bool agreed, uint64_t flip_at) {
    StreamPair pair = Connect(*listener_, *interrupt_);
    pair.dialed->set_wants_checksums(agreed);
    Shake(pair, Key('a'));
    pair.dialed->set_wants_checksums(true);  // what the reader of the other end asks for
    Channel from(NewFaultStream(std::move(pair.accepted), {}).value());
    Channel to(NewFaultStream(std::move(pair.dialed), {.flip_at = flip_at}).value(),
               {.peer = "worker-1"});
    EXPECT_TRUE(from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).ok());
    const absl::Status status = to.Receive(TestDeadline(), *interrupt_).status();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("worker-1"));
    }
    return std::string(status.message());
  };
  EXPECT_EQ(pass(true, kNever), "");
  EXPECT_THAT(pass(true, kFrameHeaderBytes + 3), HasSubstr("damaged on their way"));
  EXPECT_THAT(pass(false, kNever), HasSubstr("has no checksum"));
}

TEST_F(HandshakeTest, AnotherKeyIsRefusedOnBothSidesWithoutAWordMore) {
  const Outcome outcome = Shake(Key('a'), Worker(1), Key('b'), Worker(0));
  for (const absl::Status& status : {outcome.dialed.status(), outcome.accepted.status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("wrong key"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("aaaa")));
  }
}

TEST_F(HandshakeTest, AnotherJobIsRefusedOnBothSidesWithBothNamed) {
  const Outcome outcome = Shake(Key('a'), Worker(1, "adult"), Key('b'), Worker(0, "clicks"));
  for (const absl::Status& status : {outcome.dialed.status(), outcome.accepted.status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'adult'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("'clicks'"));
  }
}

TEST_F(HandshakeTest, AnotherVersionIsRefusedWithBothNamed) {
  std::string hello = EncodeMessage(HandshakeKind::kDialHello, "whatever it has there");
  hello[8] = 77;
  const absl::Status status = AcceptBytes(hello);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 77"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("version ", kProtocolVersion)));
}

TEST_F(HandshakeTest, TheDialingSideHearsOfAnotherVersionToo) {
  StreamPair pair = Connect(*listener_, *interrupt_);
  std::string hello = EncodeMessage(HandshakeKind::kVerdict, "");
  hello[8] = 77;
  const ConstBytes piece = std::as_bytes(std::span(hello));
  ASSERT_EQ(pair.accepted->Write({&piece, 1}).value_or(0), hello.size());
  const absl::Status status =
      DialHandshake(*pair.dialed, Key('a'), Worker(0), "", TestDeadline(), *interrupt_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 77"));
}

TEST_F(HandshakeTest, WhoIsNotAdmittedHearsWhy) {
  const absl::Status why = absl::AbortedError("worker 1: incarnation 5 is older than 6");
  const Outcome outcome =
      Shake(Key('a'), Worker(1), Key('a'), Worker(0), [&](const Peer&) { return why; });
  EXPECT_EQ(outcome.dialed.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(outcome.dialed.status().message()),
              HasSubstr(std::string(why.message())));
  EXPECT_FALSE(outcome.accepted.ok());
}

// A stranger who sends back what he is sent, as hello and as proof.
TEST_F(HandshakeTest, AReflectionProvesNothing) {
  StreamPair pair = Connect(*listener_, *interrupt_);
  std::thread mirror([&] {
    while (true) {
      const absl::StatusOr<ConstBytes> some = pair.accepted->Peek();
      if (!some.ok()) return;
      std::string bytes(reinterpret_cast<const char*>(some->data()), some->size());
      pair.accepted->Consume(bytes.size());
      // The hello comes back as the answer that it would be, with a made-up proof.
      if (bytes.size() > 10 && bytes[10] == 1) {
        bytes = EncodeMessage(HandshakeKind::kAcceptHello,
                              bytes.substr(kEnvelopeBytes) + std::string(kProofBytes, 'x'));
      }
      const ConstBytes piece = std::as_bytes(std::span(bytes));
      if (!bytes.empty() && !pair.accepted->Write({&piece, 1}).ok()) return;
      const Awaited one = {.stream = pair.accepted.get(), .read = true};
      if (!WaitFor({&one, 1}, TestDeadline(), *interrupt_).ok()) return;
    }
  });
  const absl::Status status =
      DialHandshake(*pair.dialed, Key('a'), Worker(0), "", TestDeadline(), *interrupt_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  pair.dialed->Close();
  mirror.join();
  const std::string said = "transcript";
  EXPECT_NE(Proof(Key('a'), kAcceptLabel, said), Proof(Key('a'), kDialLabel, said));
}

TEST_F(HandshakeTest, GarbageIsRefused) {
  const std::string good =
      EncodeMessage(HandshakeKind::kDialHello, EncodeHello({.identity = Worker(0)}));
  std::string huge = good;
  huge[15] = 0x7f;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), huge, good.substr(0, good.size() - 1) + "x",
        EncodeMessage(HandshakeKind::kDialHello, ""),
        EncodeMessage(HandshakeKind::kDialProof, std::string(kProofBytes, 'x'))}) {
    EXPECT_EQ(AcceptBytes(bytes).code(), absl::StatusCode::kDataLoss) << bytes;
  }
  EXPECT_EQ(AcceptBytes(good.substr(0, 20)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AcceptBytes("").code(), absl::StatusCode::kUnavailable);
}

TEST_F(HandshakeTest, LongNamesAreRefusedBeforeTheyTravel) {
  const Outcome outcome = Shake(Key('a'), Worker(1, std::string(256, 'j')), Key('a'), Worker(0));
  EXPECT_EQ(outcome.dialed.status().code(), absl::StatusCode::kInvalidArgument);
}

class AcceptorTest : public testing::TestWithParam<Address::Kind> {};

TEST_P(AcceptorTest, SilentStrangersDoNotKeepPeersOut) {
  const SocketFolder folder;
  const auto interrupt = Interrupt::Create().value();
  Mutex mutex;
  std::vector<std::string> came, refused;
  AcceptorOptions options = {.key = Key('a'),
                             .self = [] { return Worker(0); },
                             .on_peer =
                                 [&](const Peer& peer, std::unique_ptr<Stream>) {
                                   const MutexLock lock(&mutex);
                                   came.push_back(ShortName(peer.identity) + " " + peer.service);
                                 },
                             .on_refused =
                                 [&](const absl::Status& why) {
                                   const MutexLock lock(&mutex);
                                   refused.push_back(why.ToString());
                                 },
                             .handshake_seconds = 60,
                             .max_pending = 4};
  auto acceptor = Acceptor::Start(Listener::Listen(folder.At(GetParam())).value(), options).value();
  std::vector<std::unique_ptr<Stream>> silent;
  for (int i = 0; i < 10; ++i) {
    silent.push_back(Dial(acceptor->address(), {}, TestDeadline(), *interrupt).value());
  }
  std::vector<std::string> expected;
  for (uint32_t i = 1; i <= 3; ++i) {
    auto stream = Dial(acceptor->address(), {}, TestDeadline(), *interrupt).value();
    const absl::StatusOr<Peer> peer =
        DialHandshake(*stream, Key('a'), Worker(i), "ring", TestDeadline(), *interrupt);
    EXPECT_TRUE(peer.ok()) << peer.status();
    expected.push_back(StrCat("worker ", i, " ring"));
  }
  acceptor.reset();
  EXPECT_THAT(came, testing::UnorderedElementsAreArray(expected));
  EXPECT_LE(refused.size(), silent.size());
  EXPECT_THAT(refused, testing::Contains(HasSubstr("more than 4")));
}

TEST_P(AcceptorTest, StrangersDoNotFillTheLog) {
  const SocketFolder folder;
  const auto interrupt = Interrupt::Create().value();
  std::atomic<int> lines = 0;
  const AcceptorOptions options = {.key = Key('a'),
                                   .self = [] { return Worker(0); },
                                   .on_peer = [](const Peer&, std::unique_ptr<Stream>) {},
                                   .on_refused = [&](const absl::Status&) { ++lines; }};
  auto acceptor = Acceptor::Start(Listener::Listen(folder.At(GetParam())).value(), options).value();
  for (int i = 0; i < 50; ++i) {
    auto stream = Dial(acceptor->address(), {}, TestDeadline(), *interrupt).value();
    // Refused: another key.
    EXPECT_FALSE(
        DialHandshake(*stream, Key('b'), Worker(1), "ring", TestDeadline(), *interrupt).ok());
  }
  acceptor.reset();
  // 1 to 5 and 10 of each cause: one that hung up first is refused for another.
  EXPECT_GE(lines, 5);
  EXPECT_LE(lines, 18);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AcceptorTest,
                         testing::Values(Address::Kind::kTcp, Address::Kind::kUnix,
                                         Address::Kind::kSharedMemory));

}  // namespace
}  // namespace muster::net::transport
