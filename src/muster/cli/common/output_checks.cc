#include "muster/cli/common/output_checks.h"

#include <filesystem>
#include <system_error>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/io/path_scheme.h"

namespace muster::cli {
namespace {

bool IsOneFile(io::FileSystem& files, const std::string& a, const std::string& b) {
  const auto first = files.Stat(a), second = files.Stat(b);
  return first.ok() && second.ok() && !first->identity.empty() &&
         first->identity == second->identity;
}

}  // namespace

absl::Status CheckNotData(io::FileSystem& files, const std::vector<std::string>& patterns,
                          const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    if (output.is_folder || output.path.empty() || output.path == "-") continue;
    const absl::StatusOr<io::FileInfo> there = files.Stat(output.path);
    if (there.ok() && there->is_folder) {
      return absl::InvalidArgumentError(StrCat(output.flag, " ", output.path,
                                               " is a folder: give the name of a file, such as ",
                                               io::JoinPath(output.path, "predictions.csv")));
    }
  }
  for (const std::string& pattern : patterns) {
    if (pattern == "-") continue;
    const auto paths = io::Glob(files, pattern);
    if (!paths.ok()) continue;  // the reader of the pattern reports it
    for (const std::string& path : *paths) {
      for (const Output& output : outputs) {
        if (output.path.empty() || output.path == "-") continue;
        if (IsOneFile(files, output.path, path)) {
          return absl::InvalidArgumentError(StrCat(output.flag, " ", output.path,
                                                   " is the data file ", path,
                                                   ", which would be lost: give another name"));
        }
        if (output.is_folder && IsOneFile(files, output.path, io::Dirname(path))) {
          return absl::InvalidArgumentError(
              StrCat(output.flag, " ", output.path, " is the folder of the data file ", path,
                     ", among which parts would be written: give another folder"));
        }
      }
    }
  }
  return absl::OkStatus();
}

bool SamePlace(io::FileSystem& files, const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  if (a == b || IsOneFile(files, a, b)) return true;
  const auto place = [](const std::string& path) {
    std::error_code failed;
    std::filesystem::path found(io::LocalPath(path).value_or(path));
    if (auto whole = std::filesystem::absolute(found, failed); !failed) found = std::move(whole);
    if (auto real = std::filesystem::weakly_canonical(found, failed); !failed) {
      found = std::move(real);
    }
    std::string text = found.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
  };
  return place(a) == place(b);
}

void CheckRejectsPlace(io::FileSystem& files, const std::string& rejects, const std::string& out) {
  if (rejects == "-") {
    throw CLI::ValidationError("--rejects",
                               "-: standard output has the results; give the name of a file");
  }
  if (SamePlace(files, rejects, out)) {
    throw CLI::ValidationError("--rejects",
                               StrCat(rejects, " is what --out names: give each its own"));
  }
}

}  // namespace muster::cli
