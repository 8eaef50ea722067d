// BlockPlaces: which DataNode serves which block of a file, as the NameNode said when the block was
// first read. Later reads of the block ask that DataNode at once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "muster/net/http/call.h"

namespace muster::files {

// Any thread.
class BlockPlaces {
 public:
  // `block_bytes` 0: the file is taken for one block.
  explicit BlockPlaces(uint64_t block_bytes) : block_bytes_(block_bytes) {}

  // The place to read these bytes from, or nullopt if it must be asked for.
  std::optional<net::HttpLocation> Find(uint64_t offset, uint64_t length) const;
  // Keeps the redirection that the NameNode answered for a read at `offset`.
  void Keep(uint64_t offset, const net::HttpLocation& place);
  void Forget(uint64_t offset);

 private:
  uint64_t GetBlock(uint64_t offset) const { return block_bytes_ > 0 ? offset / block_bytes_ : 0; }

  const uint64_t block_bytes_;
  mutable std::mutex mutex_;
  std::map<uint64_t, net::HttpLocation> places_;  // by the block's number
};

// The target with other values for "offset" and "length" in its query.
std::string WithRange(std::string_view target, uint64_t offset, uint64_t length);

}  // namespace muster::files
