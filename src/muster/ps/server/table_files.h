// TableFiles: a server's rows of the large tables (Variable::is_large_table), which it saves and
// loads by itself where it has the model folder, so that no other task needs memory for them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/placement.h"

namespace muster::ps {

// What a server needs for that. Plain data; any thread may use it.
struct TableStorage {
  io::FileSystem* files = nullptr;  // null: this server has no model folder
  std::string folder = {};          // the model folder
  // Fills pieces of a variable's initial weights, in order, from the first element on: returns the
  // function that fills the next one.
  using FillNext = std::function<void(std::span<float> piece)>;
  std::function<FillNext(int variable)> initial = {};
};

class TableFiles {
 public:
  // What is referred to must outlive the object.
  TableFiles(TableStorage storage, std::span<const Variable> variables, const Placement& placement,
             int server);

  // The text of a small temporary file of the model folder, which it also writes into a file at
  // GetAnswerPath; "" if there is no such file, or the server may not write there.
  std::string ReadFile(const std::string& path) const;

  // Fills the slice's values, of this server's part.
  using Fetch = std::function<absl::Status(const Slice& slice, std::span<float> values)>;
  // Writes the rows into a file and syncs it. After an error there is no such file.
  // INVALID_ARGUMENT if `path` is no temporary file of the model folder.
  absl::StatusOr<SavedTables> Save(const std::string& path, const Fetch& fetch) const;

  // Takes the slice with its values.
  using Take = std::function<absl::Status(const Slice& slice)>;
  // Reads the rows from the checkpoint, however many servers have written it; "": gives them their
  // initial values. Errors are those of formats::BundleReader; INVALID_ARGUMENT if `checkpoint` is
  // not in the model folder.
  absl::Status Load(const std::string& checkpoint, const Take& take) const;

 private:
  bool IsHere(const std::string& path) const;
  absl::Status SaveRows(uint32_t variable, const Fetch& fetch, io::WritableFile& file,
                        std::vector<uint32_t>* checksums) const;
  absl::Status Initialize(uint32_t variable, const Take& take) const;
  // Takes those of a table's elements [first, first + values.size()) that are of this server.
  absl::Status TakeOwn(std::span<const RowRun> runs, int64_t first, std::span<const float> values,
                       Slice slice, const Take& take) const;

  const TableStorage storage_;
  const std::span<const Variable> variables_;
  const Placement& placement_;
  const int server_;
};

}  // namespace muster::ps
