// TableFiles: a server's rows of large tables and of tables that grow
// (Variable::is_saved_by_servers), which it saves and loads by itself where it has the model
// folder, so that no other task needs memory for them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/bundle.h"
#include "muster/io/file_system.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/placement.h"
#include "muster/tables/dynamic_table.h"

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

// The state that a server saves and loads. An error of a call ends the save or load. Other threads
// use the state between two calls; they change its tables only when the chief has given the save
// up.
class TableState {
 public:
  virtual ~TableState() = default;
  // Fills the slice's values, of this server's part.
  virtual absl::Status Fetch(const Slice& slice, std::span<float> values) = 0;
  // Calls read with a table that grows.
  using ReadTable = std::function<void(const tables::DynamicTable& table)>;
  virtual absl::Status ReadKeys(uint32_t variable, const ReadTable& read) = 0;
  // Takes the slice with its values; of a table that grows after its keys.
  virtual absl::Status Load(const Slice& slice) = 0;
  virtual absl::Status LoadKeys(const KeySlice& slice) = 0;
};

class TableFiles {
 public:
  // What is referred to must outlive the object.
  TableFiles(TableStorage storage, std::span<const Variable> variables, const Placement& placement,
             int server);

  // The text of a small temporary file of the model folder, which it also writes into a file at
  // GetAnswerPath; "" if there is no such file, or the server may not write there.
  std::string ReadFile(const std::string& path) const;

  // Writes the rows into a file and syncs it. After an error there is no such file.
  // INVALID_ARGUMENT if `path` is no temporary file of the model folder.
  absl::StatusOr<SavedTables> Save(const std::string& path, TableState& state) const;

  // Reads the rows from the checkpoint, however many servers have written it; "": gives them their
  // initial values. Errors are those of formats::BundleReader; FAILED_PRECONDITION if the
  // checkpoint is of another model, INVALID_ARGUMENT if it is not in the model folder.
  absl::Status Load(const std::string& checkpoint, TableState& state) const;

 private:
  bool IsHere(const std::string& path) const;
  absl::Status SaveRows(uint32_t variable, TableState& state, io::WritableFile& file,
                        std::vector<uint32_t>* checksums) const;
  absl::Status Initialize(uint32_t variable, TableState& state) const;
  absl::Status LoadRows(uint32_t variable, const formats::BundleReader& bundle,
                        const std::string& checkpoint, TableState& state) const;

  const TableStorage storage_;
  const std::span<const Variable> variables_;
  const Placement& placement_;
  const int server_;
};

}  // namespace muster::ps
