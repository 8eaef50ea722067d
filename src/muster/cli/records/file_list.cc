#include "muster/cli/records/file_list.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "muster/base/number_text.h"
#include "muster/base/strings.h"
#include "muster/io/path_scheme.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr int kSticky = 01000;
// Hadoop's least widths of replication, owner, group and size (org.apache.hadoop.fs.shell.Ls).
constexpr std::array<int, 4> kWidths = {3, 0, 0, 10};

std::string FormatTime(const char* form, const io::FileInfo& info) {
  return absl::FormatTime(form, absl::FromUnixNanos(info.modified_ns), absl::UTCTimeZone());
}

// "drwxr-xr-t", and "+" or a space after it.
std::string FormatMode(const io::FileInfo& info) {
  std::string text(info.is_folder ? "d" : "-");
  for (int bit = 8; bit >= 0; --bit) {
    text += ((info.mode >> bit) & 1) == 0 ? '-' : "xwr"[bit % 3];
  }
  if ((info.mode & kSticky) != 0) text.back() = text.back() == 'x' ? 't' : 'T';
  return text + (info.has_acl ? "+" : " ");
}

// Turns the numbers of a local file system into this machine's names.
void NameOwner(const std::string& path, io::FileInfo* info) {
  const std::string_view scheme = io::PathScheme(path);
  if (!scheme.empty() && scheme != io::kFileScheme) return;
  uid_t user = 0;
  gid_t group = 0;
  if (absl::SimpleAtoi(info->owner, &user)) {
    if (const passwd* const entry = getpwuid(user); entry != nullptr) info->owner = entry->pw_name;
  }
  if (absl::SimpleAtoi(info->group, &group)) {
    if (const ::group* const entry = getgrgid(group); entry != nullptr) {
      info->group = entry->gr_name;
    }
  }
}

std::string ToJson(const std::string& path, const io::FileInfo& info) {
  nlohmann::ordered_json object = {{"path", path},
                                   {"type", info.is_folder ? "folder" : "file"},
                                   {"modified", FormatTime(absl::RFC3339_sec, info)}};
  if (!info.is_folder) object["bytes"] = info.size;
  object["mode"] = absl::StrFormat("%04o", info.mode);
  object["owner"] = info.owner;
  object["group"] = info.group;
  if (info.replication > 0) object["replication"] = info.replication;
  if (info.has_acl) object["acl"] = true;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string ToShort(const std::string& path, const io::FileInfo& info) {
  return absl::StrFormat("%15s  %s  %s%s", info.is_folder ? "-" : GroupDigits(info.size),
                         FormatTime("%Y-%m-%d %H:%M", info), path,
                         info.is_folder && !path.ends_with('/') ? "/" : "");
}

}  // namespace

void FileList::Add(const std::string& path, io::FileInfo info) {
  if (form_ != ListForm::kShort) NameOwner(path, &info);
  files_.emplace_back(path, std::move(info));
}

void FileList::Print(std::FILE* out) {
  const auto replication = [](const io::FileInfo& info) {
    return info.replication > 0 ? StrCat(info.replication) : "-";
  };
  std::array<int, 4> widths = kWidths;
  for (const auto& [path, info] : files_) {
    const std::array<size_t, 4> sizes = {replication(info).size(), info.owner.size(),
                                         info.group.size(), StrCat(info.size).size()};
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], static_cast<int>(sizes[i]));
    }
  }
  for (const auto& [path, info] : files_) {
    std::string line;
    if (form_ == ListForm::kJson) line = ToJson(path, info);
    if (form_ == ListForm::kShort) line = ToShort(path, info);
    if (form_ == ListForm::kLong) {
      line = absl::StrFormat("%s%*s %-*s %-*s %*d %s %s", FormatMode(info), widths[0],
                             replication(info), widths[1], info.owner, widths[2], info.group,
                             widths[3], info.size, FormatTime("%Y-%m-%d %H:%M", info), path);
    }
    absl::FPrintF(out, "%s\n", line);
  }
  files_.clear();
}

}  // namespace muster::cli
