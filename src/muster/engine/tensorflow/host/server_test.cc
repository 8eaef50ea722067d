#include "muster/engine/tensorflow/host/server.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::engine::tensorflow::host {
namespace {

using ::testing::HasSubstr;

// A server on a thread of this process, and an owner that may send anything.
class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    requests_.Reset(eventfd(0, EFD_CLOEXEC));
    answers_.Reset(eventfd(0, EFD_CLOEXEC));
    segment_ = SharedSegment::Create().value();
    ASSERT_EQ(segment_->Allocate(sizeof(Control)).value(), 0u);
    request_.reply = segment_->Allocate(4096).value();
    request_.reply_room = 4096;
    request_.sequence = 1;
    request_.segment_bytes = segment_->bytes();
    auto theirs = SharedSegment::Attach(process::Descriptor(dup(segment_->fd())));
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    thread_ = std::thread([this, segment = *std::move(theirs)]() mutable {
      Server server(process::Descriptor(dup(requests_.get())),
                    process::Descriptor(dup(answers_.get())), std::move(segment));
      result_ = server.Serve();
    });
  }
  void TearDown() override { Close().IgnoreError(); }

  void Body(const FieldWriter& fields) {
    request_.body = segment_->Allocate(fields.bytes().size()).value();
    request_.body_bytes = fields.bytes().size();
    std::copy(fields.bytes().begin(), fields.bytes().end(), segment_->at(request_.body));
    request_.segment_bytes = segment_->bytes();
  }
  // Returns the error that the server answers with.
  std::string Ask(RequestKind kind) {
    request_.kind = kind;
    Send();
    uint64_t count = 0;
    EXPECT_EQ(read(answers_.get(), &count, sizeof count), sizeof count);
    Answer answer;
    std::memcpy(&answer, segment_->at(offsetof(Control, answer)), sizeof answer);
    EXPECT_TRUE(CheckAnswer(answer, request_).ok());
    ++request_.sequence;
    std::string_view text;
    FieldReader reply({segment_->at(request_.reply), answer.reply_bytes});
    if (answer.code == 0 || !reply.Text(&text)) return "";
    return std::string(text);
  }
  void Send() {
    std::memcpy(segment_->at(0), &request_, sizeof request_);
    const uint64_t one = 1;
    EXPECT_EQ(write(requests_.get(), &one, sizeof one), sizeof one);
  }
  // Returns the error that the server ends with.
  absl::Status End() {
    if (thread_.joinable()) {
      Send();
      thread_.join();
    }
    return result_;
  }
  absl::Status Close() {
    request_.kind = RequestKind::kEnd;
    return End();
  }

  process::Descriptor requests_, answers_;
  std::unique_ptr<SharedSegment> segment_;
  Request request_;
  std::thread thread_;
  absl::Status result_;
};

TEST_F(ServerTest, EndsOnRequest) { EXPECT_TRUE(Close().ok()); }

TEST_F(ServerTest, RequestsOutOfOrderAreErrors) {
  EXPECT_EQ(Ask(RequestKind::kRun), "no model is loaded");
  EXPECT_EQ(Ask(RequestKind::kCollect), "no model is loaded");
  EXPECT_THAT(Ask(RequestKind::kLoad), HasSubstr("malformed"));
  FieldWriter fields;
  fields.Text("folder");
  Body(fields);
  EXPECT_THAT(Ask(RequestKind::kLoad), HasSubstr("malformed"));
  fields.Text("config");
  Body(fields);
  EXPECT_EQ(Ask(RequestKind::kLoad), "TensorFlow is not loaded yet");
  EXPECT_THAT(Ask(RequestKind::kOpen), HasSubstr("malformed"));
  fields.Clear();
  fields.Text("/no/such/folder");
  Body(fields);
  EXPECT_THAT(Ask(RequestKind::kOpen), HasSubstr("no libtensorflow_cc.so.2 in /no/such/folder"));
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerTest, ATextThatIsTooLongIsCut) {
  request_.reply_room = 32;
  EXPECT_EQ(Ask(RequestKind::kRun), "no model is load");
  request_.reply_room = 0;
  EXPECT_EQ(Ask(RequestKind::kRun), "");
}

TEST_F(ServerTest, PlacesOutsideTheMemoryEndIt) {
  request_.body = segment_->bytes() - 8;
  request_.body_bytes = 16;
  EXPECT_EQ(End().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ServerTest, PlacesWhoseEndOverflowsEndIt) {
  request_.reply = kAlignment;
  request_.reply_room = UINT64_MAX;
  EXPECT_EQ(End().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ServerTest, MissingMemoryEndsIt) {
  request_.segment_bytes = segment_->bytes() * 2;
  EXPECT_THAT(End().message(), HasSubstr("the owner shares fewer"));
}

TEST_F(ServerTest, AnotherVersionEndsIt) {
  request_.version = kVersion + 1;
  EXPECT_THAT(End().message(), HasSubstr("not one of this version"));
}

TEST_F(ServerTest, AnotherSequenceEndsIt) {
  request_.sequence = 3;
  EXPECT_THAT(End().message(), HasSubstr("request 3 after 0"));
}

TEST(SharedSegmentTest, GrowsAtItsAddressOnBothSides) {
  const auto mine = SharedSegment::Create().value();
  const uint64_t first = mine->Allocate(100).value();
  std::memcpy(mine->at(first), "first", 5);
  const auto theirs = SharedSegment::Attach(process::Descriptor(dup(mine->fd()))).value();
  ASSERT_TRUE(theirs->MapTo(mine->bytes()).ok());
  const std::byte* const at = theirs->at(first);
  EXPECT_EQ(std::memcmp(at, "first", 5), 0);
  const uint64_t second = mine->Allocate(5 << 20).value();
  EXPECT_EQ(second % kAlignment, 0u);
  std::memcpy(mine->at(second + (5 << 20) - 6), "second", 6);
  EXPECT_FALSE(theirs->Has(second, 5 << 20));
  ASSERT_TRUE(theirs->MapTo(mine->bytes()).ok());
  EXPECT_TRUE(theirs->Has(second, 5 << 20));
  EXPECT_EQ(theirs->at(first), at);
  EXPECT_EQ(std::memcmp(theirs->at(second + (5 << 20) - 6), "second", 6), 0);
  EXPECT_EQ(theirs->MapTo(mine->bytes() + 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(mine->Allocate(kMaxSegmentBytes).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SharedSegmentTest, MemoryThatCouldShrinkIsRefused) {
  process::Descriptor open(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(SharedSegment::Attach(std::move(open)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SharedBlockTest, MovesOnlyWhenItGrows) {
  const auto segment = SharedSegment::Create().value();
  SharedBlock block;
  const uint64_t first = block.Reserve(*segment, 100).value();
  EXPECT_EQ(block.Reserve(*segment, 128).value(), first);
  const uint64_t second = block.Reserve(*segment, 129).value();
  EXPECT_NE(second, first);
  EXPECT_EQ(block.Reserve(*segment, 200).value(), second);
}

TEST(TensorPlaceTest, IsReadAsItWasWritten) {
  TensorPlace place{.type = 3, .offset = 64, .bytes = 24, .rank = 2};
  place.dims[0] = 2;
  place.dims[1] = 3;
  FieldWriter writer;
  writer.Text("abc");
  place.Write(writer);
  for (size_t cut = 0; cut <= writer.bytes().size(); ++cut) {
    FieldReader reader(writer.bytes().first(cut));
    std::string_view text;
    TensorPlace read;
    const bool whole = reader.Text(&text) && read.Read(reader);
    EXPECT_EQ(whole, cut == writer.bytes().size()) << cut;
    EXPECT_EQ(read == place, whole);
  }
  uint64_t elements = 0;
  EXPECT_TRUE(place.Elements(&elements));
  EXPECT_EQ(elements, 6u);
  place.dims[0] = uint64_t{1} << 47;
  EXPECT_FALSE(place.Elements(&elements));
}

TEST(GoodStringsTest, OffsetsMustAscendUpToTheEnd) {
  const auto good = [](std::vector<uint64_t> offsets, size_t texts, uint64_t elements) {
    const auto head = std::as_bytes(std::span(offsets));
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.resize(bytes.size() + texts);
    return GoodStrings(bytes, elements);
  };
  EXPECT_TRUE(good({0, 2, 2, 5}, 5, 3));
  EXPECT_TRUE(good({0}, 0, 0));
  EXPECT_FALSE(good({}, 0, 0));
  EXPECT_FALSE(good({0, 2, 1, 5}, 5, 3));
  EXPECT_FALSE(good({1, 2, 2, 5}, 5, 3));
  EXPECT_FALSE(good({0, 2, 2, 4}, 5, 3));
  EXPECT_FALSE(good({0, 2, 9, 5}, 5, 3));
  EXPECT_FALSE(good({0, 2, 2, 5}, 5, uint64_t{1} << 62));
}

}  // namespace
}  // namespace muster::engine::tensorflow::host
