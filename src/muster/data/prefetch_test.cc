#include "muster/data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace muster::data {
namespace {

using Items = Prefetch<std::vector<int>>;

// Produces 0, 1, ..., count - 1.
Items::Produce Counter(int count, absl::Status end = absl::OkStatus()) {
  return [next = 0, count, end](std::vector<int>* item) mutable -> absl::StatusOr<bool> {
    if (next == count) {
      MUSTER_RETURN_IF_ERROR(end);
      return false;
    }
    item->assign(1, next++);
    return true;
  };
}

TEST(PrefetchTest, HandsOutAllInOrder) {
  for (size_t depth : {1, 2, 7}) {
    Items items(Counter(1000), depth);
    std::vector<int> item;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(*items.Next(&item));
      ASSERT_EQ(item[0], i);
      items.Recycle(std::move(item));
    }
    EXPECT_FALSE(*items.Next(&item));
    EXPECT_FALSE(*items.Next(&item)) << "after the end there must be no more items";
  }
}

TEST(PrefetchTest, PeekTellsWhatIsKnown) {
  Items items(Counter(2), 2);
  std::vector<int> item;
  for (int i = 0; i < 2; ++i) {
    while (!items.Peek()) std::this_thread::yield();
    EXPECT_EQ(**items.Peek(), std::vector<int>{i});
    ASSERT_TRUE(*items.Next(&item));
    EXPECT_EQ(item[0], i);
  }
  while (!items.Peek()) std::this_thread::yield();
  EXPECT_EQ(*items.Peek(), nullptr);
  Items broken(Counter(0, absl::DataLossError("broken")), 2);
  EXPECT_FALSE(broken.Next(&item).ok());
  EXPECT_FALSE(broken.Peek().has_value());
}

TEST(PrefetchTest, AnErrorComesAfterTheItemsBeforeIt) {
  Items items(Counter(3, absl::DataLossError("broken")), 2);
  std::vector<int> item;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(*items.Next(&item));
  EXPECT_EQ(items.Next(&item).status(), absl::DataLossError("broken"));
  EXPECT_EQ(items.Next(&item).status(), absl::DataLossError("broken"));
}

TEST(PrefetchTest, IsNeverMoreThanDepthAhead) {
  std::atomic<int> produced{0}, used{0}, most{0};
  Items items(
      [&](std::vector<int>*) -> absl::StatusOr<bool> {
        const int ahead = ++produced - used;
        if (ahead > most) most = ahead;
        return produced < 500;
      },
      3);
  std::vector<int> item;
  while (*items.Next(&item)) ++used;
  // Three items wait, one is being made, one was taken but is not counted yet.
  EXPECT_LE(most, 5);
}

TEST(PrefetchTest, StopsWhileTheProducerWaits) {
  for (int taken = 0; taken < 20; ++taken) {
    Items items(Counter(1'000'000), 2);
    std::vector<int> item;
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(*items.Next(&item));
  }
}

TEST(PrefetchTest, RecycledMemoryIsReused) {
  Prefetch<std::unique_ptr<int>> items(
      [made = 0](std::unique_ptr<int>* item) mutable -> absl::StatusOr<bool> {
        if (*item == nullptr) {
          if (++made > 4) return absl::InternalError("items are not used again");
          *item = std::make_unique<int>();
        }
        return true;
      },
      2);
  std::unique_ptr<int> item;
  for (int i = 0; i < 1000; ++i) {
    const auto more = items.Next(&item);
    ASSERT_TRUE(more.ok()) << more.status();
    items.Recycle(std::move(item));
  }
}

}  // namespace
}  // namespace muster::data
