// Whether a file that is given as a model file is data: the first mistake that many make.
#pragma once

#include <string>

#include "muster/io/file_system.h"

namespace muster::model {

// Whether the name of a file is one of data: data.csv, part-0.tfrecord.gz. A .json is not, since a
// model file may be JSON.
bool IsNamedAsData(const std::string& path);

// Whether a file that is no model file is data, by its name or by its first bytes.
bool LooksLikeData(io::FileSystem& files, const std::string& path);

// What to do with data that is given as a model file.
std::string DescribeDataAsModel(const std::string& path);

}  // namespace muster::model
