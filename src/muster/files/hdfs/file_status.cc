#include "muster/files/hdfs/file_status.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "muster/base/strings.h"

namespace muster::files {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

absl::StatusOr<HdfsFileStatus> ParseEntry(const Json& entry, const std::string& what) {
  JsonFields fields(entry, what);
  HdfsFileStatus status;
  status.name = fields.Text("pathSuffix");
  status.info.is_folder = fields.Text("type") == "DIRECTORY";
  const int64_t length = fields.Int("length", 0, 0, INT64_MAX);
  status.info.size = status.info.is_folder ? 0 : static_cast<uint64_t>(length);
  status.info.modified_ns =
      fields.Int("modificationTime", 0, 0, INT64_MAX / kNanosecondsPerMillisecond) *
      kNanosecondsPerMillisecond;
  // HttpFS tells no inodes.
  const int64_t inode = fields.Int("fileId", 0, 0, INT64_MAX);
  if (inode > 0) status.info.identity = StrCat(inode);
  status.info.owner = fields.Text("owner");
  status.info.group = fields.Text("group");
  status.info.has_acl = fields.Bool("aclBit", false);
  status.info.replication = static_cast<int>(fields.Int("replication", 0, 0, INT16_MAX));
  const std::string mode = fields.Text("permission", "0");  // octal
  const char* const end = mode.data() + mode.size();
  const auto [parsed, error] = std::from_chars(mode.data(), end, status.info.mode, 8);
  if (error != std::errc() || parsed != end || status.info.mode < 0) {
    fields.Fail(StrCat("permission '", mode, "' is not an octal number"));
  }
  status.block_bytes = static_cast<uint64_t>(fields.Int("blockSize", 0, 0, INT64_MAX));
  MUSTER_RETURN_IF_ERROR(fields.status());
  return status;
}

}  // namespace

absl::StatusOr<HdfsFileStatus> ParseFileStatus(const Json& answer, const std::string& what) {
  JsonFields fields(answer, what);
  const Json& entry = fields.Object("FileStatus");
  MUSTER_RETURN_IF_ERROR(fields.status());
  return ParseEntry(entry, what);
}

absl::StatusOr<std::vector<HdfsFileStatus>> ParseFileStatuses(const Json& answer,
                                                              const std::string& what) {
  JsonFields fields(answer, what);
  const Json& list = fields.Object("FileStatuses");
  MUSTER_RETURN_IF_ERROR(fields.status());
  JsonFields statuses(list, what);
  std::vector<HdfsFileStatus> entries;
  for (const Json& entry : statuses.List("FileStatus")) {
    MUSTER_ASSIGN_OR_RETURN(entries.emplace_back(), ParseEntry(entry, what));
  }
  MUSTER_RETURN_IF_ERROR(statuses.status());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

}  // namespace muster::files
