// leveldb's sorted table, as TensorFlow writes it for the index of a checkpoint: data blocks of
// prefix-compressed keys, an empty meta-index block, an index block, a 48-byte footer.
// docs/formats/bundle.md; source: leveldb doc/table_format.md, tensorflow tsl/lib/io/format.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::formats {

struct TableOptions {
  size_t block_size = 262144;  // as in TensorFlow; a block ends with the entry that reaches it
  int restart_interval = 16;
};

// Builds a table in memory, with the same bytes as TensorFlow's TableBuilder writes without
// compression. One owner thread.
class TableBuilder {
 public:
  explicit TableBuilder(TableOptions options = {});

  // Keys must be added in strictly ascending order of their bytes.
  void Add(std::string_view key, std::string_view value);
  // Returns the whole file. The builder must not be used afterwards.
  std::string Finish();

 private:
  class Block {
   public:
    explicit Block(int restart_interval) : restart_interval_(restart_interval) {}
    void Add(std::string_view key, std::string_view value);
    // Adds the restart array, returns the block and begins a new one.
    std::string Finish();
    size_t size() const { return bytes_.size() + 4 * (restarts_.size() + 1); }
    bool empty() const { return bytes_.empty(); }

   private:
    int restart_interval_;
    std::string bytes_;
    std::vector<uint32_t> restarts_ = {0};
    int since_restart_ = 0;
    std::string last_key_;
  };

  // Writes the block with its trailer and returns its encoded handle.
  std::string Write(Block& block);
  void FlushData();

  TableOptions options_;
  Block data_;
  Block index_{1};
  std::string file_;
  std::string last_key_;
  std::string pending_handle_;  // handle of a data block that is not in the index yet
};

// Calls `visit(key, value)` for every entry, in order; both are valid during the call. `bytes` is
// the whole file, `file` its name in messages. DATA_LOSS with the byte offset for a wrong magic
// number, a handle or length beyond the file, a wrong checksum or keys out of order; UNIMPLEMENTED
// for compressed blocks. An error from `visit` ends the walk. All keys together may take at most 16
// times the file's size plus 1 MiB.
absl::Status ReadTable(
    std::string_view bytes, std::string_view file,
    const std::function<absl::Status(std::string_view key, std::string_view value)>& visit);

}  // namespace muster::formats
