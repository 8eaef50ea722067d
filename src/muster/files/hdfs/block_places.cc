#include "muster/files/hdfs/block_places.h"

#include "absl/strings/str_split.h"

#include "muster/base/strings.h"

namespace muster::files {

std::optional<net::HttpLocation> BlockPlaces::Find(uint64_t offset, uint64_t length) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(GetBlock(offset));
  if (found == places_.end()) return std::nullopt;
  return net::HttpLocation{.url = found->second.url,
                           .target = WithRange(found->second.target, offset, length)};
}

void BlockPlaces::Keep(uint64_t offset, const net::HttpLocation& place) {
  const std::lock_guard lock(mutex_);
  places_.insert_or_assign(GetBlock(offset), place);
}

void BlockPlaces::Forget(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  places_.erase(GetBlock(offset));
}

std::string WithRange(std::string_view target, uint64_t offset, uint64_t length) {
  const size_t question = target.find('?');
  std::string made(target.substr(0, question));
  made += StrCat("?offset=", offset, "&length=", length);
  if (question == target.npos) return made;
  const absl::string_view query(target.data() + question + 1, target.size() - question - 1);
  for (const absl::string_view parameter : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const absl::string_view name = parameter.substr(0, parameter.find('='));
    if (name != "offset" && name != "length") made += StrCat("&", std::string(parameter));
  }
  return made;
}

}  // namespace muster::files
