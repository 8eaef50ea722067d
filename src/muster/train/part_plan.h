// PartPlan: a prediction or an evaluation cut into parts that several processes make, each a file
// of its own, in one folder. The plan lies there too (_parts.json), so that whoever comes later,
// because it was killed or because somebody wants the rest, goes on with the same cuts, the same
// model and the same data, or says what is another. docs/formats/parts.md.
//
// Whole files are parts where there are as many as processes; else each part is an equal share of
// the records. Rows of a part are in the order of the data, and parts one behind the other are all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::train {

struct PartPlan {
  struct File {
    std::string path = {};
    int64_t bytes = 0;
    int64_t modified_ns = 0;  // since the Unix epoch
    friend bool operator==(const File&, const File&) = default;
  };
  std::string checkpoint = {};   // its prefix
  std::string fingerprint = {};  // of its index and of the model file
  std::string settings = {};     // what else the output depends on, for people
  std::string suffix = {};       // of output files: ".csv"
  std::vector<File> data = {};   // in the order of their rows
  int parts = 0;
  bool by_record = false;  // else a file each
  int multiple = 1;        // by_record: of which each part begins at a multiple
  friend bool operator==(const PartPlan&, const PartPlan&) = default;

  data::Shard ShardOf(int part) const {
    return {.index = part,
            .count = parts,
            .by = by_record ? data::ShardBy::kRecord : data::ShardBy::kFile,
            .multiple = multiple};
  }
};

std::string Print(const PartPlan& plan);
// INVALID_ARGUMENT "WHERE: ...".
absl::StatusOr<PartPlan> ParsePartPlan(std::string_view text, std::string_view where);

struct PartPlanOptions {
  std::vector<std::string> patterns = {};
  std::string model_dir = {};
  std::string checkpoint = {};  // "": the newest of model_dir
  std::string settings = {};
  std::string suffix = {};
  int processes = 1;
  // Cut where batches of one process are cut, a share for each process, whatever the files; those
  // with a compressed one are parts as they are, since nobody can begin in the midst of them.
  int batch_size = 0;  // 0: not so
};
// Of what is there now. NOT_FOUND for data or a checkpoint that is not.
absl::StatusOr<PartPlan> MakePartPlan(io::FileSystem& files, const PartPlanOptions& options);

// The plan that FOLDER has, which is cut as its first process wanted it, or `wanted`, which it then
// has. FAILED_PRECONDITION: the folder's plan is of another model, other data or settings, and
// which; or it has parts and no plan.
absl::StatusOr<PartPlan> OpenPartPlan(io::FileSystem& files, const std::string& folder,
                                      const PartPlan& wanted);

// FOLDER/part-00002-of-00008.csv
std::string PartPath(const std::string& folder, const PartPlan& plan, int part);

// Whether it is there; where it is not, what a killed process has left of it is removed.
absl::StatusOr<bool> PartIsDone(io::FileSystem& files, const std::string& folder,
                                const PartPlan& plan, int part);

}  // namespace muster::train
