#include "muster/net/http/answer_reader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/strings.h"

namespace muster::net::internal {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBound = 1000;

// An answer read in pieces of so many bytes, with the end after them.
struct Reading {
  Reading(std::string_view bytes, size_t piece, bool to_head = false)
      : reader(to_head, {.head =
                             [this](const HttpAnswerHead& head) {
                               heads.push_back(head);
                               EXPECT_EQ(body, "");
                               return absl::OkStatus();
                             },
                         .body =
                             [this](std::string_view more) {
                               EXPECT_EQ(heads.size(), 1u);
                               EXPECT_FALSE(more.empty());
                               body += more;
                               return absl::OkStatus();
                             },
                         .max_body_bytes = kBound}) {
    for (size_t at = 0; at < bytes.size() && reader.fault().ok() && !reader.done(); at += piece) {
      reader.Put(bytes.substr(at, piece));
    }
    reader.PutEnd();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  std::vector<HttpAnswerHead> heads = {};
  std::string body = {};
  HttpAnswerReader reader;
};

std::string Chunked(std::string_view chunks) {
  return StrCat("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", chunks);
}

TEST(HttpAnswerReaderTest, BodiesEndAsTheirHeaderSays) {
  struct Case {
    std::string answer = {};
    int status = 0;
    std::string body = {};
    bool keep_alive = false;
  };
  const std::vector<Case> cases = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[7]", 200, "[7]", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n[7]", 200, "[7]", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n[7]", 200, "[7]", false},
      {"HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", 500, "", true},
      {"HTTP/1.1 200 OK\r\n\r\nall of it", 200, "all of it", false},
      {"HTTP/1.1 200 OK\r\n\r\n", 200, "", false},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", 204, "", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7",
       200, "7", true},
      {Chunked("0\r\n\r\n"), 200, "", true},
      {Chunked("3\r\nab\n\r\n00a;x=\"y\"\r\n0123456789\r\n1 \r\n]\r\n000\r\nX: y\r\nZ: a\r\n\r\n"),
       200, "ab\n0123456789]", true}};
  for (const Case& test : cases) {
    for (size_t piece : {size_t{1}, size_t{2}, size_t{7}, test.answer.size()}) {
      const Reading read(test.answer, piece);
      ASSERT_TRUE(read.reader.done()) << test.answer << "\n" << read.reader.fault();
      EXPECT_EQ(read.reader.status(), test.status) << test.answer;
      EXPECT_EQ(read.body, test.body) << test.answer;
      EXPECT_EQ(read.reader.keep_alive(), test.keep_alive) << test.answer;
      EXPECT_EQ(read.heads.size(), 1u) << test.answer;
    }
  }
}

TEST(HttpAnswerReaderTest, TheAnswerToHeadHasNoBody) {
  const Reading read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 5, /*to_head=*/true);
  EXPECT_TRUE(read.reader.done());
}

TEST(HttpAnswerReaderTest, WhatFollowsAnAnswerIsNotTaken) {
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7";
  for (const std::string& answer : {sized, Chunked("1\r\n7\r\n0\r\n\r\n")}) {
    std::string body;
    HttpAnswerReader reader(false, {.body = [&](std::string_view bytes) {
                              body += bytes;
                              return absl::OkStatus();
                            }});
    EXPECT_EQ(reader.Put(answer + "HTTP/1.1"), answer.size());
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(reader.Put("more"), 0u);
    EXPECT_EQ(body, "7");
  }
}

TEST(HttpAnswerReaderTest, FaultsSayWhatIsWrong) {
  struct Case {
    std::string answer = {};
    absl::StatusCode code = {};
    std::string message = {};
  };
  constexpr auto kNoAnswer = absl::StatusCode::kUnavailable;
  constexpr auto kTooMuch = absl::StatusCode::kResourceExhausted;
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  std::string interim;
  while (interim.size() <= kMaxAnswerHeaderBytes) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  std::string many_fields = ok;
  for (size_t i = 0; i <= kMaxAnswerFields; ++i) many_fields += "A: b\r\n";
  many_fields += "\r\n";
  const std::vector<Case> cases = {
      {"", kNoAnswer, "closed the connection without an answer"},
      {"HTT", kNoAnswer, "cut short: only a part of its header came"},
      {ok, kNoAnswer, "cut short: only a part of its header came"},
      {ok + "Content-Length: 4\r\n\r\n[1", kNoAnswer, "cut short: 2 bytes of its body came"},
      {Chunked("5\r\nab"), kNoAnswer, "cut short: 2 bytes of its body came"},
      {Chunked("2\r\nab"), kNoAnswer, "cut short: 2 bytes"},
      {Chunked("2\r\nab\r\n"), kNoAnswer, "cut short: 2 bytes"},
      {Chunked("2\r\nab\r\n0\r\n"), kNoAnswer, "cut short: 2 bytes"},
      {"SSH-2.0-OpenSSH_9.2\r\n", kNoAnswer, "does another program listen there?"},
      {"HTTP/2 200\r\n\r\n", kNoAnswer, "not HTTP/1.1"},
      {"HTTP/1.1 2000 OK\r\n\r\n", kNoAnswer, "not HTTP/1.1"},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", kNoAnswer, "status 101"},
      {"HTTP/1.1 000 \r\n\r\n", kNoAnswer, "not HTTP/1.1"},
      {ok + "no colon\r\n\r\n", kNoAnswer, "not HTTP/1.1"},
      {ok + "Content-Length: -1\r\n\r\n", kNoAnswer, "not HTTP/1.1"},
      {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n12", kNoAnswer, "not HTTP/1.1"},
      {ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1", kNoAnswer, "not HTTP/1.1"},
      {ok + "Transfer-Encoding: gzip\r\n\r\n1", kNoAnswer, "coding that was not asked for"},
      {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n1", kNoAnswer, "coding that was not"},
      {Chunked("\r\n"), kNoAnswer, "a chunk has no size"},
      {Chunked("-1\r\n"), kNoAnswer, "a chunk has no size"},
      {Chunked("0x1\r\n"), kNoAnswer, "a chunk has no size"},
      {Chunked("1\n7"), kNoAnswer, "without CR LF"},
      {Chunked("1\r\n77\r\n"), kNoAnswer, "longer than it says"},
      {Chunked("1;" + std::string(5000, 'a')), kNoAnswer, "more than 4096 bytes"},
      {ok + "Content-Length: 1001\r\n\r\n", kTooMuch, "more than the 1000 bytes"},
      {ok + "Content-Length: 18446744073709551615\r\n\r\n", kTooMuch, "more than the 1000 bytes"},
      {ok + "\r\n" + std::string(kBound + 1, 'a'), kTooMuch, "more than the 1000 bytes"},
      {Chunked("3e9\r\n"), kTooMuch, "more than the 1000 bytes"},
      {Chunked("1\r\n7\r\n3e8\r\n"), kTooMuch, "more than the 1000 bytes"},
      {Chunked("fffffffffffffffff\r\n"), kTooMuch, "more than the 1000 bytes"},
      {ok + "A: " + std::string(100'000, 'a'), kTooMuch, "header has more than 65536 bytes"},
      {interim, kTooMuch, "header has more than 65536 bytes"},
      {many_fields, kTooMuch, "header has more than 256 fields"}};
  for (const Case& test : cases) {
    for (size_t piece : {size_t{1}, size_t{7}, test.answer.size() + 1}) {
      const Reading read(test.answer, piece);
      const HttpAnswerReader& reader = read.reader;
      EXPECT_FALSE(reader.done()) << test.answer;
      EXPECT_EQ(reader.fault().code(), test.code) << test.answer << "\n" << reader.fault();
      EXPECT_THAT(reader.fault().ToString(), HasSubstr(test.message)) << test.answer;
    }
  }
}

TEST(HttpAnswerReaderTest, FieldsAreHandedOnInTheirOrder) {
  const Reading read(
      "HTTP/1.1 307 Temporary Redirect\r\nlocation:  http://a:1/b?c=d \r\nSet-Cookie: a\r\n"
      "Set-Cookie: b\r\nEmpty:\r\nContent-Length: 0\r\n\r\n",
      3);
  ASSERT_TRUE(read.reader.done()) << read.reader.fault();
  ASSERT_EQ(read.heads.size(), 1u);
  const HttpFields expected = {{"location", "http://a:1/b?c=d"},
                               {"Set-Cookie", "a"},
                               {"Set-Cookie", "b"},
                               {"Empty", ""},
                               {"Content-Length", "0"}};
  EXPECT_EQ(read.heads[0].fields, expected);
  EXPECT_EQ(*read.heads[0].Find("Location"), "http://a:1/b?c=d");
  EXPECT_EQ(read.heads[0].Find("Retry-After"), nullptr);
}

TEST(HttpAnswerReaderTest, ABodyIsHandedOnBeforeItsEndCame) {
  std::vector<std::string> pieces;
  HttpAnswerReader reader(false, {.body = [&](std::string_view bytes) {
                            pieces.emplace_back(bytes);
                            return absl::OkStatus();
                          }});
  reader.Put(Chunked("3\r\nab\n\r\n4\r\nc"));
  EXPECT_EQ(pieces, (std::vector<std::string>{"ab\n", "c"}));
  reader.Put("d");
  EXPECT_EQ(pieces.back(), "d");
  EXPECT_FALSE(reader.done());
}

TEST(HttpAnswerReaderTest, AReceiversErrorIsTheFaultAndItIsNotCalledAgain) {
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7";
  const absl::Status full = absl::DataLossError("no more");
  for (const std::string& answer :
       {sized, Chunked("1\r\n7\r\n1\r\n8\r\n0\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\n\r\n7")}) {
    for (const bool at_head : {true, false}) {
      int calls = 0;
      HttpAnswerReader reader(false, {.head =
                                          [&](const HttpAnswerHead&) {
                                            return at_head ? ++calls, full : absl::OkStatus();
                                          },
                                      .body = [&](std::string_view) { return ++calls, full; }});
      for (const char c : answer) reader.Put(std::string_view(&c, 1));
      reader.PutEnd();
      EXPECT_EQ(reader.fault(), full) << answer;
      EXPECT_FALSE(reader.done());
      EXPECT_EQ(calls, 1);
    }
  }
}

TEST(HttpAnswerReaderTest, WithoutABoundOnlyTheNumberOfBytesThatCanBeCountedIsTooMuch) {
  HttpAnswerReader reader(false, {});
  reader.Put(Chunked("1\r\n7\r\nfffffffffffffffe\r\n"));
  EXPECT_TRUE(reader.fault().ok()) << reader.fault();
  HttpAnswerReader overflowing(false, {});
  overflowing.Put(Chunked("1\r\n7\r\nffffffffffffffff\r\n"));
  EXPECT_TRUE(absl::IsResourceExhausted(overflowing.fault())) << overflowing.fault();
}

TEST(HttpAnswerReaderTest, AnEndlessTrailerIsGivenUp) {
  HttpAnswerReader reader(false, {});
  reader.Put(Chunked("0\r\n"));
  size_t sent = 0;
  while (reader.fault().ok() && sent < 2 * kMaxAnswerHeaderBytes) sent += reader.Put("A: bcd\r\n");
  EXPECT_THAT(reader.fault().ToString(), HasSubstr("trailer has more than 65536 bytes"));
}

}  // namespace
}  // namespace muster::net::internal
