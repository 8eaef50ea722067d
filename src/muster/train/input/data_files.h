// The files of a training's data, which all of its tasks must see alike, and how evenly they are
// divided among replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::train {

struct DataFile {
  std::string name = {};  // without its folder, which may differ between machines
  uint64_t bytes = 0;
};

// The files that match `patterns`, in the order in which a source reads them. NOT_FOUND for a
// pattern without files.
absl::StatusOr<std::vector<DataFile>> FindDataFiles(io::FileSystem& files,
                                                    const std::vector<std::string>& patterns);

// "4 files of 1234 bytes, names and sizes 0a1b2c3d": the same text for the same names and sizes, in
// the same order.
std::string DescribeDataFiles(const std::vector<DataFile>& files);

// A warning for people if whole files are divided into `parts` (0: one part per replica) among
// `replicas` and one replica has at least 1.5 times the bytes of another: it says which replica
// waits for which, and what to do. Otherwise "".
std::string DescribeUnevenShares(const std::vector<DataFile>& files, int replicas, int parts);

}  // namespace muster::train
