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

// The path itself or the nearest one above it that is there; "" if there is none.
std::string FindNearest(io::FileSystem& files, std::string path) {
  while (!files.Stat(path).ok()) {
    const std::string above = io::Dirname(path);
    if (above == path || above.empty()) return "";
    path = above;
  }
  return path;
}

}  // namespace

absl::Status CheckPlace(io::FileSystem& files, const Output& output) {
  const std::string& path = output.path;
  if (path.empty() || path == "-" || !io::LocalPath(path).ok()) return absl::OkStatus();
  const std::string what = StrCat(output.flag, " ", path);
  const std::string nearest = FindNearest(files, path);
  const auto found = files.Stat(nearest);
  if (!found.ok()) return absl::OkStatus();
  const bool is_there = nearest == path;
  if (!found->is_folder && (output.is_folder || !is_there)) {
    return absl::FailedPreconditionError(
        StrCat(what, ": ", nearest, " is a file, and no folder; give another ",
               output.is_folder ? "folder, which is made if it is not there" : "path"));
  }
  if (output.is_folder) return absl::OkStatus();
  if (is_there && found->is_folder) {
    return absl::FailedPreconditionError(StrCat(what,
                                                " is a folder: give the name of a file, such as ",
                                                io::JoinPath(path, output.example)));
  }
  const std::string folder = io::Dirname(path);
  if (is_there || !absl::IsNotFound(files.Stat(folder).status())) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(what, ": the folder ", folder,
                                              " does not exist; make it (mkdir -p ", folder,
                                              "), or give another path"));
}

absl::Status CheckNotData(io::FileSystem& files, const std::vector<std::string>& patterns,
                          const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    MUSTER_RETURN_IF_ERROR(CheckPlace(files, output));
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
