// Bodies that are read into memory of the receiver's.
#include <atomic>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "muster/net/http/exchange_test_peer.h"

namespace muster::net {
namespace {

constexpr double kShortSilenceSeconds = 0.1;
constexpr size_t kBodyBytes = size_t{3} << 20;
constexpr size_t kPieceBytes = size_t{8} << 10;

std::string SizedHead(size_t size) {
  return StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", size, "\r\n\r\n");
}

std::string MakeBody(size_t size) {
  std::string body(size, '\0');
  for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + i / 4093);
  return body;
}

// Takes a body into its memory and counts the bytes that came elsewhere.
struct Room {
  explicit Room(size_t size) : memory(size, '\0') {}

  HttpReceiver receiver() {
    return {
        .body =
            [this](std::string_view bytes) {
              if (bytes.data() != memory.data() + filled) {
                elsewhere += bytes.size();
                memory.replace(filled, bytes.size(), bytes);
              }
              filled += bytes.size();
              return absl::OkStatus();
            },
        .room = [this] { return std::span<char>(memory.data() + filled, memory.size() - filled); }};
  }

  std::string memory;
  std::atomic<size_t> filled = 0;
  size_t elsewhere = 0;
};

TEST(HttpExchangeRoomTest, ABodyIsReadIntoTheReceiversMemoryAndTheConnectionIsUsedAgain) {
  const std::string body = MakeBody(kBodyBytes);
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(SizedHead(body.size()));
    for (size_t at = 0; at < body.size(); at += kPieceBytes) {
      peer.Send(std::string_view(body).substr(at, kPieceBytes));
    }
    peer.ReadUntil("\r\n\r\n");
    peer.Send(SizedAnswer("small"));
  }});
  const auto exchange = ExchangeWith(server.url());
  Room room(body.size());
  const auto head =
      exchange->Send(GetCall("/large"), room.receiver(), {.total_seconds = kTestSeconds});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_TRUE(room.memory == body);
  EXPECT_LT(room.elsewhere, size_t{64} << 10) << "what came with the head";
  const auto small = FetchFrom(*exchange, GetCall("/small"));
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->body, "small");
}

// Each piece is smaller than what a read may wait for, and is sent after the one before was taken.
TEST(HttpExchangeRoomTest, AServerThatSendsLittleIsNotSilent) {
  const std::string body = MakeBody(kBodyBytes);
  Room room(body.size());
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(SizedHead(body.size()));
    for (size_t at = 0; at < 2; ++at) {
      peer.Send(std::string_view(body).substr(at, 1));
      EXPECT_TRUE(WaitFor([&] { return room.filled == at + 1; }));
    }
    peer.Send(std::string_view(body).substr(2));
  }});
  const auto head = ExchangeWith(server.url())
                        ->Send(GetCall("/large"), room.receiver(),
                               {.total_seconds = kTestSeconds, .silence_seconds = 1});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_TRUE(room.memory == body);
}

TEST(HttpExchangeRoomTest, AServerThatFallsSilentInTheMidstIsGivenUp) {
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(SizedHead(kBodyBytes));
    peer.Send("abc");
    peer.ReadToEnd();
  }});
  Room room(kBodyBytes);
  const auto head =
      ExchangeWith(server.url())
          ->Send(GetCall("/large"), room.receiver(), {.silence_seconds = kShortSilenceSeconds});
  EXPECT_TRUE(absl::IsDeadlineExceeded(head.status())) << head.status();
  EXPECT_EQ(room.filled, 3);
}

// What follows the body does not belong to it, and ends the connection.
TEST(HttpExchangeRoomTest, NoMoreThanTheBodyIsTaken) {
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(SizedHead(10));
    peer.Send("0123456789more");
  }});
  Room room(100);
  const auto head = ExchangeWith(server.url())
                        ->Send(GetCall("/x"), room.receiver(), {.total_seconds = kTestSeconds});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(room.filled, 10);
  EXPECT_EQ(room.memory.substr(0, 11), std::string("0123456789\0", 11));
}

}  // namespace
}  // namespace muster::net
