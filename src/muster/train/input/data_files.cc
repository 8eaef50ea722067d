#include "muster/train/input/data_files.h"

#include <algorithm>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"

namespace muster::train {
namespace {

constexpr double kUnevenTimes = 1.5;

std::string NameOfReplica(int64_t rank) {
  return rank == 0 ? "chief-0" : StrCat("worker-", rank - 1);
}

}  // namespace

absl::StatusOr<std::vector<DataFile>> FindDataFiles(io::FileSystem& files,
                                                    const std::vector<std::string>& patterns) {
  std::vector<DataFile> found;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, io::Glob(files, pattern));
    for (const std::string& path : paths) {
      MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(path));
      found.push_back({.name = std::string(io::Basename(path)), .bytes = info.size});
    }
  }
  return found;
}

std::string DescribeDataFiles(const std::vector<DataFile>& files) {
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  for (const DataFile& file : files) {
    bytes += file.bytes;
    checksum = ExtendCrc32c(checksum, StrCat(file.name, "\n", file.bytes, "\n"));
  }
  return absl::StrFormat("%d %s of %d bytes, names and sizes %08x", files.size(),
                         files.size() == 1 ? "file" : "files", bytes, checksum);
}

std::string DescribeUnevenShares(const std::vector<DataFile>& files, int replicas, int parts) {
  if (replicas < 2) return "";
  const size_t cuts = static_cast<size_t>(parts > 0 ? parts : replicas);
  if (files.size() < cuts) return "";  // parts are then equal shares of the records
  std::vector<uint64_t> bytes(static_cast<size_t>(replicas));
  for (size_t i = 0; i < files.size(); ++i) {
    bytes[i % cuts % static_cast<size_t>(replicas)] += files[i].bytes;
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  if (static_cast<double>(*most) < kUnevenTimes * static_cast<double>(*least)) return "";
  return StrCat(
      "warning: ", files.size(), " files are dealt whole to ", replicas,
      " replicas: ", NameOfReplica(most - bytes.begin()), " has ", *most, " bytes, ",
      NameOfReplica(least - bytes.begin()), " ", *least,
      ", and has nothing to do from when its data has ended until that of all has; cut the "
      "data into files of equal size, as many for each replica");
}

}  // namespace muster::train
