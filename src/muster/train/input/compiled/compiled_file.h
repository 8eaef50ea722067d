// Compiled files: the compiled rows of one RecordSource, a block for each of its chunks, so that a
// reader of the file takes the same rows in the same order, with the same positions, as a reader of
// the source. docs/formats/compiled_features.md is the format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"
#include "muster/train/input/compiled/compiled_rows.h"

namespace muster::train {

// Where a compiled file has the rows of a chunk.
struct CompiledBlock {
  uint64_t begin = 0, size = 0;  // bytes in the file
  uint64_t row_bytes = 0;  // of each row; 0: the block ends with the end of each, 4 bytes each
  uint32_t crc = 0;        // Crc32c of the block
};

// What a compiled file says of itself.
struct CompiledInfo {
  std::string key = {};  // what it was made of, exactly (feature_cache.h)
  std::vector<std::string> files = {};
  std::vector<data::ChunkInfo> chunks = {};
  std::vector<CompiledBlock> blocks = {};  // by chunk
  uint64_t fingerprint = 0;                // of the source
  CompiledLayout layout = {};
  std::vector<std::string> warnings = {};  // about the data, of the pass that made it
};

// The end of a compiled file after its blocks.
std::string PrintCompiledEnd(const CompiledInfo& info);
// Reads the end of a file of so many bytes. DATA_LOSS for a file that is cut or damaged;
// FAILED_PRECONDITION for one that another version has written. The blocks lie in the file, and
// their chunks in the files.
using ReadFile = std::function<absl::StatusOr<std::string>(uint64_t begin, size_t size)>;
absl::StatusOr<CompiledInfo> ReadCompiledEnd(uint64_t file_size, const ReadFile& read);

// Writes a compiled file under a temporary name. One owner thread. A writer that is not finished
// leaves no file, unless the process is killed.
class CompiledFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<CompiledFileWriter>> Create(io::FileSystem& files,
                                                                    const std::string& path);
  ~CompiledFileWriter();

  // Writes the rows of a chunk, which lie one after the other in `bytes`: all of one length, or
  // with these ends.
  absl::StatusOr<CompiledBlock> AddBlock(std::string_view bytes, size_t row_bytes);
  absl::StatusOr<CompiledBlock> AddBlock(std::string_view bytes, const std::vector<uint32_t>& ends);
  // Gives the file its name. The writer must not be used any more.
  absl::Status Finish(const CompiledInfo& info);
  uint64_t size() const { return size_; }

 private:
  CompiledFileWriter(io::FileSystem& files, std::string path);
  absl::Status Append(std::string_view bytes);

  io::FileSystem& files_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<io::WritableFile> file_;
  uint64_t size_ = 0;
};

// Opens a compiled file as a RecordSource whose records are compiled rows, in chunks, files and
// with a fingerprint that are those of the source that it was made of. Each block is checked
// whenever it is read. Errors of reading it are those of IsCompiledDamage.
class CompiledFile {
 public:
  static absl::StatusOr<std::shared_ptr<const CompiledFile>> Open(io::FileSystem& files,
                                                                  const std::string& path);

  const CompiledInfo& info() const { return info_; }
  const std::string& path() const { return path_; }
  std::shared_ptr<const data::RecordSource> source() const { return source_; }

 private:
  CompiledFile(std::string path, CompiledInfo info)
      : path_(std::move(path)), info_(std::move(info)) {}

  const std::string path_;
  const CompiledInfo info_;
  std::shared_ptr<const data::RecordSource> source_;
};

}  // namespace muster::train
