#include "muster/net/transport/shared_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster::net::transport {
namespace {

constexpr size_t kRing = kMinRingBytes;

struct Ring {
  std::unique_ptr<RingControl> control = std::make_unique<RingControl>();
  std::unique_ptr<std::byte[]> data = std::make_unique<std::byte[]>(kRing);
  RingWriter writer{control.get(), data.get(), kRing};
  RingReader reader{control.get(), data.get(), kRing};
  bool bell = false;

  absl::StatusOr<size_t> Write(const std::string& text) {
    const ConstBytes piece = std::as_bytes(std::span(text));
    return writer.Write({&piece, 1}, &bell);
  }
};

TEST(SharedRingTest, GivesBackWhatWasWrittenAroundItsEnd) {
  Ring ring;
  uint8_t next_in = 0, next_out = 0;
  for (int round = 0; round < 100; ++round) {
    std::string text(kRing * 2 / 3, '\0');
    for (char& c : text) c = static_cast<char>(next_in++);
    ASSERT_EQ(ring.Write(text).value(), text.size());
    for (size_t got = 0; got < text.size();) {
      const ConstBytes some = ring.reader.Peek().value();
      ASSERT_FALSE(some.empty());
      for (const std::byte b : some) ASSERT_EQ(static_cast<uint8_t>(b), next_out++);
      got += some.size();
      ring.reader.Consume(some.size(), &ring.bell);
    }
  }
  EXPECT_FALSE(ring.bell) << "nobody slept";
}

TEST(SharedRingTest, TakesNoMoreThanItHolds) {
  Ring ring;
  EXPECT_EQ(ring.Write(std::string(kRing + 5, 'x')).value(), kRing);
  EXPECT_EQ(ring.Write("y").value(), 0u);
}

TEST(SharedRingTest, TheBellRingsForWhoSleepsAndOnlyThen) {
  Ring ring;
  EXPECT_FALSE(ring.reader.Arm(&ring.bell)) << "there is nothing: sleep";
  ASSERT_EQ(ring.Write("x").value(), 1u);
  EXPECT_TRUE(ring.bell);
  ring.bell = false;
  ring.reader.Disarm();
  EXPECT_TRUE(ring.reader.Arm(&ring.bell)) << "something came: do not sleep";
  ring.reader.Disarm();

  ASSERT_EQ(ring.Write(std::string(kRing, 'x')).value(), kRing - 1);
  EXPECT_FALSE(ring.writer.Arm()) << "there is no room: sleep";
  ring.reader.Consume(ring.reader.Peek().value().size(), &ring.bell);
  EXPECT_TRUE(ring.bell);
  ring.writer.Disarm();
  EXPECT_TRUE(ring.writer.Arm()) << "there is room: do not sleep";
}

// A reader that sleeps for the rest of something gives the room back first.
TEST(SharedRingTest, SleepingGivesRoomBack) {
  Ring ring;
  ASSERT_EQ(ring.Write("some").value(), 4u);
  ASSERT_EQ(ring.reader.Peek().value().size(), 4u);
  ring.reader.Consume(4, &ring.bell);
  EXPECT_EQ(ring.control->read, 0u);
  EXPECT_FALSE(ring.reader.Arm(&ring.bell));
  EXPECT_EQ(ring.control->read, 4u);
}

TEST(SharedRingTest, PositionsThatCannotBeAreRefused) {
  for (const uint64_t lie : {uint64_t{3}, uint64_t{kRing + 5}, ~uint64_t{0}, uint64_t{1} << 40}) {
    Ring ring;
    ASSERT_EQ(ring.Write("four").value(), 4u);
    ASSERT_EQ(ring.reader.Peek().value().size(), 4u);
    ring.control->written = lie;
    const absl::Status refused = ring.reader.Peek().status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << lie << refused;
  }
  for (const uint64_t lie : {uint64_t{kRing + 1}, ~uint64_t{0}}) {
    Ring ring;
    ASSERT_EQ(ring.Write(std::string(kRing, 'x')).value(), kRing);
    ring.control->read = lie;
    EXPECT_EQ(ring.Write("y").status().code(), absl::StatusCode::kDataLoss) << lie;
  }
}

}  // namespace
}  // namespace muster::net::transport
