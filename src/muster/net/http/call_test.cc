// Requests as bytes: their head, their body in pieces; and the parts of a redirect's URL.
#include "muster/net/http/call.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/strings.h"
#include "muster/net/http/request_head.h"
#include "muster/net/http/request_writer.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<std::string> MakeHead(const HttpCall& call, const BearerToken* token = nullptr) {
  return internal::MakeRequestHead(internal::ParseHttpUrl("http://a:1/base").value(), call, token);
}

// Gives its pieces one after the other, once or as often as asked.
class PiecesBody : public BodySource {
 public:
  explicit PiecesBody(std::vector<std::string> pieces, std::optional<uint64_t> size = {})
      : pieces_(std::move(pieces)), size_(size) {}
  std::optional<uint64_t> size() const override { return size_; }
  bool Restart() override {
    next_ = 0;
    return true;
  }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (next_ == pieces_.size()) return 0;
    const std::string& piece = pieces_[next_++];
    EXPECT_LE(piece.size(), size);
    std::memcpy(buffer, piece.data(), piece.size());
    return piece.size();
  }

 private:
  const std::vector<std::string> pieces_;
  const std::optional<uint64_t> size_;
  size_t next_ = 0;
};

std::vector<std::string> GetPieces(BodySource* body) {
  internal::HttpRequestWriter writer("head;", body);
  EXPECT_TRUE(writer.Restart());
  std::vector<std::string> pieces;
  for (;;) {
    const auto piece = writer.Next();
    EXPECT_TRUE(piece.ok()) << piece.status();
    if (!piece.ok() || piece->empty()) return pieces;
    pieces.emplace_back(*piece);
  }
}

TEST(HttpCallTest, AHeadHasTheCallsFieldsAndThoseOfItsFrame) {
  HttpCall call = {.method = "PATCH",
                   .target = "/x?a=b",
                   .fields = {{"Accept", "application/json"}, {"Content-Type", "a/b; c=\"d\""}}};
  const std::string begin =
      "PATCH /base/x?a=b HTTP/1.1\r\nHost: a:1\r\nAccept: application/json\r\n"
      "Content-Type: a/b; c=\"d\"\r\n";
  EXPECT_EQ(MakeHead(call).value(), begin + "Content-Length: 0\r\n\r\n");
  call.body = MakeTextBody("four");
  EXPECT_EQ(MakeHead(call).value(), begin + "Content-Length: 4\r\n\r\n");
  call.body = std::make_unique<PiecesBody>(std::vector<std::string>{"a"});
  EXPECT_EQ(MakeHead(call).value(), begin + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(MakeHead({.method = "GET", .target = "/"}).value(),
            "GET /base/ HTTP/1.1\r\nHost: a:1\r\nAccept: */*\r\n\r\n");
  const auto token = BearerToken::FromText("abc", "a test");
  EXPECT_EQ(MakeHead({.method = "GET", .target = "/"}, &*token).value(),
            "GET /base/ HTTP/1.1\r\nHost: a:1\r\nAccept: */*\r\nAuthorization: Bearer abc\r\n\r\n");
}

TEST(HttpCallTest, WhatCouldEndALineOrChangeTheFrameIsRefusedAndNotRepeated) {
  const std::vector<HttpField> fields = {{"X", "secret\r\nY: z"},
                                         {"X", "secret\n"},
                                         {"X", std::string("secret\0", 7)},
                                         {"X\r\nY", "secret"},
                                         {"X: secret", ""},
                                         {"X ", "secret"},
                                         {"", "secret"},
                                         {"host", "secret"},
                                         {"Content-length", "1"},
                                         {"Transfer-Encoding", "chunked"},
                                         {"Connection", "close"},
                                         {"Expect", "100-continue"},
                                         {"Upgrade", "websocket"},
                                         {"authorization", "Basic secret"}};
  const auto token = BearerToken::FromText("abc", "a test");
  for (const HttpField& field : fields) {
    const absl::Status status =
        MakeHead({.method = "GET", .target = "/", .fields = {field}}, &*token).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field.name << ": " << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
  }
  EXPECT_TRUE(
      MakeHead({.method = "GET", .target = "/", .fields = {{"Authorization", "Negotiate YII="}}})
          .ok());
  for (const char* target : {"/secret b", "/secret\r\nX: y", "secret", "", "/secret\x7f"}) {
    const absl::Status status = MakeHead({.method = "GET", .target = target}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << target << ": " << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
  }
  for (const char* method : {"", "get", "GET /", "GET\r\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeHead({.method = method, .target = "/"}).status()));
  }
}

TEST(HttpCallTest, ASmallBodyIsSentWithItsHead) {
  EXPECT_EQ(GetPieces(nullptr), std::vector<std::string>{"head;"});
  EXPECT_EQ(GetPieces(MakeTextBody("").get()), std::vector<std::string>{"head;"});
  EXPECT_EQ(GetPieces(MakeTextBody("body").get()), std::vector<std::string>{"head;body"});
}

TEST(HttpCallTest, ALargeBodyIsSentInPiecesThatMakeTheWhole) {
  std::string text(300'000, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  const std::vector<std::string> pieces = GetPieces(MakeTextBody(text).get());
  std::string whole;
  for (const std::string& piece : pieces) {
    EXPECT_LE(piece.size(), (size_t{64} << 10) + 5);
    whole += piece;
  }
  EXPECT_EQ(pieces.size(), 5u);
  EXPECT_EQ(whole, "head;" + text);
}

TEST(HttpCallTest, ABodyOfUnknownSizeIsSentInChunksAsItIsRead) {
  PiecesBody body({"a", std::string(26, 'b')});
  EXPECT_EQ(GetPieces(&body), (std::vector<std::string>{
                                  "head;", "1\r\na\r\n",
                                  StrCat("1a\r\n", std::string(26, 'b'), "\r\n"), "0\r\n\r\n"}));
  PiecesBody large({std::string(size_t{64} << 10, 'c')});
  EXPECT_THAT(GetPieces(&large).at(1), StartsWith("10000\r\nccc"));
  PiecesBody empty({});
  EXPECT_EQ(GetPieces(&empty), (std::vector<std::string>{"head;", "0\r\n\r\n"}));
}

TEST(HttpCallTest, ARequestCanBeSentAgainFromItsFirstByte) {
  PiecesBody body({"a", "b"});
  internal::HttpRequestWriter writer("head;", &body);
  ASSERT_TRUE(writer.Restart());
  EXPECT_EQ(writer.Next().value(), "head;");
  EXPECT_EQ(writer.Next().value(), "1\r\na\r\n");
  ASSERT_TRUE(writer.Restart());
  EXPECT_EQ(writer.Next().value(), "head;");
  EXPECT_EQ(writer.Next().value(), "1\r\na\r\n");
}

TEST(HttpCallTest, ABodyThatEndsBeforeItsAnnouncedSizeIsAnError) {
  PiecesBody body({"a", "b"}, 3);
  internal::HttpRequestWriter writer("head;", &body);
  ASSERT_TRUE(writer.Restart());
  EXPECT_EQ(writer.Next().value(), "head;a");
  EXPECT_EQ(writer.Next().value(), "b");
  const absl::Status status = writer.Next().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("after 2 of the 3 bytes"));
  EXPECT_TRUE(writer.failed());
}

TEST(HttpCallTest, ARedirectsUrlIsTwoParts) {
  const auto location = ParseHttpLocation("http://dn:9864/webhdfs/v1/a%20b?op=OPEN&offset=1");
  ASSERT_TRUE(location.ok()) << location.status();
  EXPECT_EQ(location->url, "http://dn:9864");
  EXPECT_EQ(location->target, "/webhdfs/v1/a%20b?op=OPEN&offset=1");
  EXPECT_EQ(ParseHttpLocation("https://[::1]")->target, "/");
  for (const char* text : {"/only/secret", "ftp://a/secret", "http://a?secret", "http://a/secret#b",
                           "http://a/secret b", "http://u:secret@a/", "http:///secret", ""}) {
    const absl::Status status = ParseHttpLocation(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("location"), Not(HasSubstr("secret"))));
  }
}

}  // namespace
}  // namespace muster::net
