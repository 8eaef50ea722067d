// PartPlan: cuts a prediction or an evaluation into parts that several processes make. Each part
// has its own output file. All output files lie in one folder, which also contains the plan
// (_parts.json): a process that starts later, after a kill or to make the remaining parts,
// therefore continues with the same cuts, model and data, or reports what differs. See
// docs/formats/parts.md.
//
// If there are at least as many files as processes, each part is a whole file; else each part is an
// equal share of the records. The rows of a part are in the order of the data, and all parts in
// order make up the whole data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::score {

struct PartPlan {
  struct File {
    // A file or a partition, as described by data::SourceItem.
    std::string path = {};
    int64_t begin = 0;  // the first offset of a partition
    int64_t bytes = 0;  // a file's size, or the number of a partition's offsets
    int64_t modified_ns = 0;
    std::string identity = {};
    int64_t records = -1;  // the number of records, if the plan numbers rows; -1: not counted
    // Whether both are the same file, even if only one is counted.
    friend bool operator==(const File& a, const File& b) {
      return a.path == b.path && a.begin == b.begin && a.bytes == b.bytes &&
             a.modified_ns == b.modified_ns && a.identity == b.identity;
    }
  };
  std::string checkpoint = {};   // the checkpoint's prefix
  std::string fingerprint = {};  // checksum of the checkpoint's index and the model file
  std::string settings = {};     // what else the output depends on, as text for people
  std::string suffix = {};       // the ending of output files: ".csv"
  std::vector<File> data = {};   // in the order of their rows
  int parts = 0;
  bool by_record = false;  // parts are shares of the records; else whole files
  int multiple = 1;        // by_record: each part begins at a multiple of this many records
  bool numbered = false;   // a row's only key is its number: OpenPartPlan counts records
  friend bool operator==(const PartPlan&, const PartPlan&) = default;

  data::Shard GetShard(int part) const {
    return {.index = part,
            .count = parts,
            .by = by_record ? data::ShardBy::kRecord : data::ShardBy::kFile,
            .multiple = multiple};
  }
  // Returns SourceSpec::first_number of the part's shard.
  uint64_t GetFirstNumber(int part) const;
};

std::string Print(const PartPlan& plan);
// Errors are INVALID_ARGUMENT "WHERE: ...".
absl::StatusOr<PartPlan> ParsePartPlan(std::string_view text, std::string_view where);

struct PartPlanOptions {
  std::vector<std::string> patterns = {};
  data::SourceSchemes schemes = {};  // see data::SourceSpec
  formats::DataFormat format = {};   // of the data
  std::string model_dir = {};
  std::string checkpoint = {};  // "": the newest of model_dir
  std::string settings = {};
  std::string suffix = {};
  int processes = 1;
  bool numbered = false;
  // If > 0: each process gets an equal share of the records, cut where a single process would cut
  // its batches of this size. If there are enough files for all processes and a file is compressed,
  // so that reading cannot begin in its middle, parts remain whole files.
  int batch_size = 0;
};
// Makes a plan for the data and checkpoint that exist now. NOT_FOUND if either is missing.
absl::StatusOr<PartPlan> MakePartPlan(io::FileSystem& files, const PartPlanOptions& options);

// Returns the plan of `folder`, with the cuts that the first process made. If the folder has none,
// writes `wanted` as its plan, with the records of its files counted if it is numbered.
// FAILED_PRECONDITION if the folder's plan is for another model, data or settings, which the error
// names, or if the folder has parts but no plan. `source` has the patterns, format and schemes that
// `wanted` was made with.
absl::StatusOr<PartPlan> OpenPartPlan(io::FileSystem& files, const std::string& folder,
                                      const PartPlan& wanted, const data::SourceSpec& source = {});

// Removes the folder if it has nothing but a plan: no part of it was made.
absl::Status RemoveUnusedPlan(io::FileSystem& files, const std::string& folder);

// FOLDER/part-00002-of-00008.csv
std::string PartPath(const std::string& folder, const PartPlan& plan, int part);

// Whether the part's file exists. If not, removes the unfinished file of a killed process.
absl::StatusOr<bool> PartIsDone(io::FileSystem& files, const std::string& folder,
                                const PartPlan& plan, int part);

}  // namespace muster::score
