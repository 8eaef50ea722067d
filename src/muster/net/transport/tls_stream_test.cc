#include "muster/net/transport/tls_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <thread>

#include "muster/net/transport/acceptor.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/fault_stream.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/test_certificates.h"
#include "muster/net/transport/test_streams.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr long kDay = 24L * 3600;

Credentials GetServer(const Credentials& authority, const std::string& host = "127.0.0.1") {
  return MakeCertificate(authority, {.name = "job", .hosts = {host}}).value();
}
Credentials MakeClient(const Credentials& authority) {
  return MakeCertificate(authority, {.name = "job", .use = CertificateUse::kClient}).value();
}

Token JobKey(char digit) { return Token::Parse(std::string(64, digit), "test").value(); }
Identity TaskAt(uint32_t index) { return {.job = "clicks", .role = "worker", .index = index}; }

// A task that takes others in at 127.0.0.1, and what becomes of those who dial it.
class TlsStreamTest : public testing::Test {
 protected:
  struct Outcome {
    absl::Status dialed;   // all of it, up to the key
    std::string accepted;  // why the other side refused; "" when it did not
  };

  Outcome Meet(const Protection& dialing, const Protection& accepting,
               const std::string& host = "127.0.0.1") {
    std::promise<std::string> judged;
    AcceptorOptions options = {
        .key = JobKey('a'),
        .self = [] { return TaskAt(0); },
        .protection = accepting,
        .on_peer = [&](const Peer&, std::unique_ptr<Stream>) { judged.set_value(""); },
        .on_refused =
            [&](const absl::Status& why) { judged.set_value(std::string(why.message())); }};
    const auto acceptor =
        Acceptor::Start(Listener::Listen(Address::Tcp("127.0.0.1", 0)).value(), options).value();
    Outcome outcome;
    const Address address = Address::Tcp(host, acceptor->address().port);
    auto stream = Dial(address, {.protection = dialing}, TestDeadline(), *interrupt_);
    outcome.dialed = stream.status();
    if (stream.ok()) {
      outcome.dialed =
          DialHandshake(**stream, JobKey('a'), TaskAt(1), "ring", TestDeadline(), *interrupt_)
              .status();
      if (!outcome.dialed.ok()) stream->reset();
    }
    outcome.accepted = judged.get_future().get();
    return outcome;
  }
  static std::string Text(const absl::Status& status) { return std::string(status.message()); }

  const Credentials authority_ = MakeAuthority("job-a", 10).value();
  const Credentials other_ = MakeAuthority("job-b", 10).value();
  const std::shared_ptr<const Tls> tls_ = MakeTls(authority_);
  const Protection safe_ = Everywhere(tls_);
  const Protection plain_ = {.plain_text = true, .within_machine = true};
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

TEST_F(TlsStreamTest, TasksOfOneJobMeet) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const Outcome outcome = Meet(safe_, safe_, host);
    EXPECT_TRUE(outcome.dialed.ok()) << outcome.dialed;
    EXPECT_EQ(outcome.accepted, "");
  }
}

// A port that is forwarded here looks like a neighbour's.
TEST_F(TlsStreamTest, WithinAMachineTlsIsUsedIfTheDialerAsksForIt) {
  for (const Protection& dialing : {safe_, Protection{.tls = tls_}, Protection{}}) {
    const Outcome outcome = Meet(dialing, {.tls = tls_});
    EXPECT_TRUE(outcome.dialed.ok()) << outcome.dialed;
    EXPECT_EQ(outcome.accepted, "");
  }
}

TEST_F(TlsStreamTest, AnotherAuthorityIsRefusedWithBothNamed) {
  const auto theirs =
      Tls::Create(other_.certificate, GetServer(other_), MakeClient(other_)).value();
  const Outcome outcome = Meet(Everywhere(theirs), safe_);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kUnauthenticated) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), AllOf(HasSubstr("tcp://127.0.0.1:"), HasSubstr("'job-a' "),
                                          HasSubstr("'job-b' "), HasSubstr("muster certs")));
  EXPECT_THAT(outcome.accepted, AllOf(HasSubstr("'job-a' "), HasSubstr("unknown ca")));
}

TEST_F(TlsStreamTest, ADialingTaskOfAnotherAuthorityIsRefusedWithBothNamed) {
  const auto theirs =
      Tls::Create(authority_.certificate, GetServer(other_), MakeClient(other_)).value();
  const Outcome outcome = Meet(Everywhere(theirs), safe_);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kUnauthenticated) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), AllOf(HasSubstr("does not believe this task's certificate"),
                                          HasSubstr("unknown ca"), HasSubstr("muster certs")));
  EXPECT_THAT(outcome.accepted,
              AllOf(HasSubstr("'job-a' "), HasSubstr("'job-b' "), HasSubstr("muster certs")));
}

TEST_F(TlsStreamTest, ATaskWithoutACertificateIsRefused) {
  const auto bare = Tls::Create(authority_.certificate, GetServer(authority_), {}).value();
  const Outcome outcome = Meet(Everywhere(bare), safe_);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kUnauthenticated) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed),
              AllOf(HasSubstr("certificate required"), HasSubstr("muster certs")));
  EXPECT_THAT(outcome.accepted, AllOf(HasSubstr("shows no certificate"), HasSubstr("'job-a' ")));
}

TEST_F(TlsStreamTest, AnExpiredCertificateIsRefusedAtEitherEnd) {
  const Credentials server = GetServer(authority_), client = MakeClient(authority_);
  const auto late_client =
      Tls::Create(authority_.certificate, server, WithLife(authority_, client, -kDay, -kDay / 2))
          .value();
  Outcome outcome = Meet(Everywhere(late_client), safe_);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kUnauthenticated) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), ContainsRegex("certificate expired, on .* GMT;"));
  EXPECT_THAT(outcome.accepted, AllOf(HasSubstr("has expired"), HasSubstr("muster certs")));
  const auto late_server =
      Tls::Create(authority_.certificate, WithLife(authority_, server, -kDay, -kDay / 2), client)
          .value();
  outcome = Meet(safe_, Everywhere(late_server));
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kUnauthenticated) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), AllOf(HasSubstr("has expired"), HasSubstr("muster certs")));
  EXPECT_THAT(outcome.accepted, ContainsRegex("certificate expired, on .* GMT;"));
}

// Nor are certificates good for what they were not made for.
TEST_F(TlsStreamTest, ACertificateOfAnotherHostOrUseIsRefused) {
  const Credentials server = GetServer(authority_), client = MakeClient(authority_);
  const auto elsewhere =
      Tls::Create(authority_.certificate, GetServer(authority_, "10.9.9.9"), client).value();
  EXPECT_THAT(
      Text(Meet(safe_, Everywhere(elsewhere)).dialed),
      AllOf(HasSubstr("not believed at 127.0.0.1"), HasSubstr("mismatch"), HasSubstr("--host")));
  const auto both_client = Tls::Create(authority_.certificate, client, client).value();
  EXPECT_EQ(Meet(safe_, Everywhere(both_client)).dialed.code(), absl::StatusCode::kUnauthenticated);
  const auto both_server = Tls::Create(authority_.certificate, server, server).value();
  EXPECT_EQ(Meet(Everywhere(both_server), safe_).dialed.code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TlsStreamTest, PlainTextAndTlsDoNotMeet) {
  Outcome outcome = Meet(plain_, safe_);
  const auto told = AllOf(HasSubstr("TLS and plain text meet"), HasSubstr("'job-a' "),
                          HasSubstr("MUSTER_CERTS"), HasSubstr("MUSTER_PLAIN_TEXT=1"));
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kFailedPrecondition) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), told);
  EXPECT_THAT(outcome.accepted, told);
  outcome = Meet(safe_, plain_);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kFailedPrecondition) << outcome.dialed;
  EXPECT_THAT(Text(outcome.dialed), told);
  EXPECT_THAT(outcome.accepted,
              AllOf(HasSubstr("TLS and plain text meet"), HasSubstr("MUSTER_CERTS")));
}

TEST_F(TlsStreamTest, PlainTextHasToBeAskedFor) {
  const Protection nothing = {.within_machine = true};
  EXPECT_TRUE(Meet(plain_, plain_).dialed.ok());
  const Outcome outcome = Meet(plain_, nothing);
  EXPECT_EQ(outcome.dialed.code(), absl::StatusCode::kFailedPrecondition) << outcome.dialed;
  EXPECT_THAT(outcome.accepted, HasSubstr("MUSTER_PLAIN_TEXT=1"));
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  const absl::Status refused =
      Dial(listener->address(), {.protection = nothing}, TestDeadline(), *interrupt_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(Text(refused), HasSubstr("MUSTER_CERTS"));
}

// Somebody with a certificate of the job, but not its key, passes everything on between two tasks.
TEST_F(TlsStreamTest, NobodyStandsInBetweenWithACertificateAlone) {
  const auto near = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  const auto far = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  StreamPair to_him = Connect(*near, *interrupt_, {.protection = safe_});
  StreamPair from_him = Connect(*far, *interrupt_, {.protection = safe_});
  std::thread between([&] {
    Stream* const ends[] = {to_him.accepted.get(), from_him.dialed.get()};
    while (true) {
      for (const int i : {0, 1}) {
        const absl::StatusOr<ConstBytes> some = ends[i]->Peek();
        if (!some.ok()) {
          to_him.accepted->Close();
          from_him.dialed->Close();
          return;
        }
        const ConstBytes piece = *some;
        if (!piece.empty()) ends[i]->Consume(ends[1 - i]->Write({&piece, 1}).value_or(0));
      }
    }
  });
  absl::Status accepted;
  std::thread task([&] {
    accepted =
        AcceptHandshake(*from_him.accepted, JobKey('a'), TaskAt(0), {}, TestDeadline(), *interrupt_)
            .status();
    from_him.accepted->Close();
  });
  const absl::Status dialed =
      DialHandshake(*to_him.dialed, JobKey('a'), TaskAt(1), "ring", TestDeadline(), *interrupt_)
          .status();
  to_him.dialed->Close();
  task.join();
  between.join();
  EXPECT_EQ(dialed.code(), absl::StatusCode::kUnauthenticated) << dialed;
  EXPECT_FALSE(accepted.ok());
}

// A flipped bit, and a cut, of what travels.
TEST_F(TlsStreamTest, WhatWasAlteredOnItsWayIsNoticed) {
  for (const uint64_t at : {uint64_t{2000}, uint64_t{20'000}, uint64_t{900'000}, kNever}) {
    const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
    auto accepted = std::async(std::launch::async, [&] {
      auto plain = AcceptStream(*listener, *interrupt_);
      return TlsStream::Accepted(NewFaultStream(std::move(plain), {.flip_at = at}).value(), tls_,
                                 TestDeadline(), *interrupt_);
    });
    auto dialed = Dial(listener->address(), {.protection = safe_}, TestDeadline(), *interrupt_);
    auto stream = accepted.get();
    if (!stream.ok()) {  // in the handshake
      EXPECT_LT(at, 3000u) << stream.status();
      continue;
    }
    ASSERT_TRUE(dialed.ok()) << dialed.status();
    const std::string text(1'000'000, 'x');
    Channel from(*std::move(dialed)), to(*std::move(stream), {.peer = "worker-1"});
    std::thread sender([&] {
      from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).IgnoreError();
    });
    const absl::Status status = to.Receive(TestDeadline(), *interrupt_).status();
    to.Close();
    sender.join();
    if (at == kNever) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Text(status), AllOf(HasSubstr("worker-1"), HasSubstr("altered on their way")));
  }
}

// Records come and go in pieces of a few bytes, and the sender is gone before the last is read.
TEST_F(TlsStreamTest, PiecesOfRecordsAndTheirEndAreRead) {
  const FaultOptions small = {.seed = 3, .short_io = 0.7};
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  auto accepted = std::async(std::launch::async, [&] {
    auto plain = AcceptStream(*listener, *interrupt_);
    return TlsStream::Accepted(NewFaultStream(std::move(plain), small).value(), tls_,
                               TestDeadline(), *interrupt_);
  });
  auto plain = Dial(listener->address(), {.protection = plain_}, TestDeadline(), *interrupt_);
  ASSERT_TRUE(plain.ok()) << plain.status();
  auto dialed = TlsStream::Dialed(NewFaultStream(*std::move(plain), small).value(), tls_,
                                  "127.0.0.1", TestDeadline(), *interrupt_);
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  Channel from(*std::move(dialed)), to(accepted.get().value());
  std::thread sender([&] {
    for (const size_t size : {0, 1, 7, 40, 3000, 16'384, 40'000, 5}) {
      const std::string text(size, 'x');
      EXPECT_TRUE(from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).ok());
    }
    from.Close();
  });
  for (const size_t size : {0, 1, 7, 40, 3000, 16'384, 40'000, 5}) {
    const auto message = to.Receive(TestDeadline(), *interrupt_);
    ASSERT_TRUE(message.ok()) << size << ": " << message.status();
    EXPECT_EQ(message->bytes().size(), size);
  }
  sender.join();
  EXPECT_TRUE(absl::IsUnavailable(to.Receive(TestDeadline(), *interrupt_).status()));
}

// The receiver closes the connection at the altered byte, while the sender still writes.
TEST_F(TlsStreamTest, TheSenderHearsThatItsBytesWereAltered) {
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  auto accepted = std::async(std::launch::async, [&] {
    auto plain = AcceptStream(*listener, *interrupt_);
    return TlsStream::Accepted(NewFaultStream(std::move(plain), {.flip_at = 20'000}).value(), tls_,
                               TestDeadline(), *interrupt_);
  });
  auto dialed = Dial(listener->address(), {.protection = safe_}, TestDeadline(), *interrupt_);
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  Channel from(*std::move(dialed)), to(accepted.get().value());
  auto received = std::async(std::launch::async, [&] {
    const absl::Status status = to.Receive(TestDeadline(), *interrupt_).status();
    to.Close();
    return status;
  });
  const std::string text(50'000'000, 'x');  // more than the sockets hold
  const absl::Status sent =
      from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_);
  EXPECT_EQ(received.get().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(sent.code(), absl::StatusCode::kDataLoss) << sent;
  EXPECT_THAT(Text(sent), HasSubstr("what it got was damaged"));
}

// What travels is nothing that anybody can read.
TEST_F(TlsStreamTest, NothingOfAMessageIsOnTheWire) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  auto near = SocketStream::Create(process::Descriptor(fds[0]), "near").value();
  auto far = SocketStream::Create(process::Descriptor(fds[1]), "far").value();
  Stream* const wire = far.get();
  auto dialing = std::async(std::launch::async, [&, inner = std::move(near)]() mutable {
    return TlsStream::Dialed(std::move(inner), tls_, "127.0.0.1", TestDeadline(), *interrupt_);
  });
  auto accepted = TlsStream::Accepted(std::move(far), tls_, TestDeadline(), *interrupt_).value();
  auto dialed = dialing.get().value();
  EXPECT_FALSE(dialed->binding().empty());
  EXPECT_EQ(dialed->binding(), accepted->binding());
  const std::string secret = "weights in the clear";
  const ConstBytes piece = std::as_bytes(std::span(secret));
  ASSERT_EQ(dialed->Write({&piece, 1}).value_or(0), secret.size());
  const ConstBytes seen = wire->Peek().value();
  const std::string_view text(reinterpret_cast<const char*>(seen.data()), seen.size());
  EXPECT_GT(text.size(), secret.size());
  EXPECT_EQ(text.find("weights"), text.npos);
  EXPECT_EQ(text.find("clear"), text.npos);
}

TEST_F(TlsStreamTest, APeerThatIsSilentIsGivenUpAtTheDeadline) {
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0)).value();
  const absl::Status status =
      Dial(listener->address(), {.protection = safe_}, process::Deadline::After(0.05), *interrupt_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(Text(status), HasSubstr("TLS handshake with tcp://127.0.0.1:"));
  interrupt_->Set(absl::AbortedError("generation 3 is over"));
  EXPECT_EQ(Dial(listener->address(), {.protection = safe_}, TestDeadline(), *interrupt_).status(),
            absl::AbortedError("generation 3 is over"));
}

}  // namespace
}  // namespace muster::net::transport
