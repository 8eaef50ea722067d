#include "muster/train/input/data_files.h"

#include <algorithm>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"

namespace muster::train {
namespace {

constexpr double kUnevenTimes = 1.5;

std::string GetReplicaName(int64_t rank) {
  return rank == 0 ? "chief-0" : StrCat("worker-", rank - 1);
}

struct Words {
  const char* item;
  const char* items;
  const char* units;
  const char* extents;
};

Words GetWords(const std::vector<data::SourceItem>& items) {
  if (!items.empty() && items.front().kind == data::SourceItem::Kind::kPartition) {
    return {"partition", "partitions", "offsets", "ranges"};
  }
  return {"file", "files", "bytes", "sizes"};
}

}  // namespace

std::string DescribeDataFiles(const std::vector<data::SourceItem>& items) {
  uint64_t size = 0;
  uint32_t checksum = 0;
  for (const data::SourceItem& item : items) {
    size += item.size();
    std::string facts = StrCat(item.common_name, "\n", item.size(), "\n");
    if (item.kind == data::SourceItem::Kind::kPartition) {
      facts += StrCat(item.begin, "\n", item.identity, "\n");
    }
    checksum = ExtendCrc32c(checksum, facts);
  }
  const Words words = GetWords(items);
  return absl::StrFormat("%d %s of %d %s, names and %s %08x", items.size(),
                         items.size() == 1 ? words.item : words.items, size, words.units,
                         words.extents, checksum);
}

std::string DescribeUnevenShares(const std::vector<data::SourceItem>& items, int replicas,
                                 int shards) {
  if (replicas < 2) return "";
  const size_t cuts = static_cast<size_t>(shards > 0 ? shards : replicas);
  if (items.size() < cuts) return "";  // shards are then equal shares of the records
  std::vector<uint64_t> sizes(static_cast<size_t>(replicas));
  for (size_t i = 0; i < items.size(); ++i) {
    sizes[i % cuts % static_cast<size_t>(replicas)] += items[i].size();
  }
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (static_cast<double>(*most) < kUnevenTimes * static_cast<double>(*least)) return "";
  const Words words = GetWords(items);
  return StrCat("warning: ", items.size(), " ", words.items, " are assigned whole to ", replicas,
                " replicas: ", GetReplicaName(most - sizes.begin()), " has ", *most, " ",
                words.units, ", ", GetReplicaName(least - sizes.begin()), " ", *least,
                ", and will wait when its data has ended; divide the data into ", words.items,
                " of equal size, the same number for each replica");
}

}  // namespace muster::train
