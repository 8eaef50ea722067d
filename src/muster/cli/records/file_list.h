// FileList: what `muster fs ls` prints of files.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "muster/io/file_system.h"

namespace muster::cli {

enum class ListForm {
  kShort,  // bytes, time and path
  kLong,   // as `hadoop fs -ls`: mode, replication, owner, group, bytes, time and path
  kJson,   // an object a line
};

// Times are in UTC.
class FileList {
 public:
  explicit FileList(ListForm form) : form_(form) {}
  void Add(const std::string& path, io::FileInfo info);
  // Writes what was added since the last call; of the long form in columns.
  void Print(std::FILE* out);

 private:
  const ListForm form_;
  std::vector<std::pair<std::string, io::FileInfo>> files_;
};

}  // namespace muster::cli
