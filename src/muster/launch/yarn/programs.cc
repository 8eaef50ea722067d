#include "muster/launch/yarn/programs.h"

#include <algorithm>
#include <cstdlib>

#include "muster/base/strings.h"
#include "muster/launch/yarn/tar.h"

namespace muster::launch::yarn {
namespace {

constexpr uint64_t kMaxProgramBytes = uint64_t{1} << 30;
constexpr char kJarName[] = "muster-yarn.jar";
constexpr char kPluginFolder[] = "tensorflow-hdfs";
constexpr int kProgramMode = 0755;

absl::Status CheckVersion(io::FileSystem& files, const std::string& jar) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, jar, kMaxProgramBytes));
  // Names of entries are not compressed.
  if (bytes.find(StrCat("META-INF/muster-master-", kMasterVersion, ".")) != bytes.npos) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      StrCat(jar, ": this ApplicationMaster is of another version of muster: use the ", kJarName,
             " that was installed with this one, or make it by java/yarn/build.sh"));
}

}  // namespace

absl::StatusOr<std::string> FindJar(io::FileSystem& files, const std::string& program) {
  if (const char* const set = std::getenv("MUSTER_YARN_JAR"); set != nullptr && *set != '\0') {
    const absl::Status fits = CheckVersion(files, set);
    return fits.ok() ? absl::StatusOr<std::string>(set) : Annotate(fits, "MUSTER_YARN_JAR");
  }
  const std::string folder = io::Dirname(program);
  const std::string beside = io::JoinPath(folder, kJarName);
  const std::string shared = StrCat(folder, "/../share/muster/", kJarName);
  for (const std::string& path : {beside, shared}) {
    if (!files.Stat(path).ok()) continue;
    MUSTER_RETURN_IF_ERROR(CheckVersion(files, path));
    return path;
  }
  return absl::NotFoundError(StrCat("the ApplicationMaster ", kJarName, " is neither at ", beside,
                                    " nor at ", shared,
                                    ": java/yarn/build.sh of Muster's sources makes it, and "
                                    "MUSTER_YARN_JAR may name it"));
}

absl::StatusOr<std::string> PackPrograms(io::FileSystem& files, const std::string& program,
                                         const std::string& jar) {
  const std::string folder = io::Dirname(program);
  std::vector<std::pair<std::string, std::string>> named = {{"muster", program}, {kJarName, jar}};
  for (const char* const name : {"muster-tensorflow", "muster-parquet"}) {
    std::string path = io::JoinPath(folder, name);
    if (files.Stat(path).ok()) named.emplace_back(name, std::move(path));
  }
  for (const char* const place : {"", "../lib/muster"}) {
    const std::string plugin = io::JoinPath(io::JoinPath(folder, place), kPluginFolder);
    auto names = files.List(plugin);
    if (!names.ok()) continue;
    std::sort(names->begin(), names->end());
    for (const std::string& name : *names) {
      std::string path = io::JoinPath(plugin, name);
      const auto info = files.Stat(path);
      if (!info.ok() || info->is_folder) continue;
      named.emplace_back(StrCat(kPluginFolder, "/", name), std::move(path));
    }
    break;
  }
  std::vector<TarEntry> entries;
  for (const auto& [name, path] : named) {
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, io::ReadFile(files, path, kMaxProgramBytes));
    entries.push_back({.name = name, .bytes = std::move(bytes), .mode = kProgramMode});
  }
  return MakeTar(entries);
}

}  // namespace muster::launch::yarn
