#include "muster/launch/yarn/programs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "muster/base/strings.h"

namespace muster::launch::yarn {
namespace {

constexpr size_t kBlock = 512, kMaxName = 99, kUstarAt = 257;
constexpr std::string_view kUstar("ustar\00000", 8);
constexpr uint64_t kMaxProgramBytes = uint64_t{1} << 30;
constexpr char kJarName[] = "muster-yarn.jar";
constexpr char kPluginFolder[] = "tensorflow-hdfs";

// A field of a header: a number in octal digits, which a zero byte ends.
void SetNumber(size_t at, size_t size, uint64_t number, std::string* header) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(size - 1),
                static_cast<unsigned long long>(number));
  header->replace(at, size - 1, text, size - 1);
}

std::string MakeHeader(const std::string& name, uint64_t size) {
  constexpr uint64_t kMode = 0755;
  std::string header(kBlock, '\0');
  header.replace(0, name.size(), name);
  SetNumber(100, 8, kMode, &header);
  SetNumber(108, 8, 0, &header);  // owner
  SetNumber(116, 8, 0, &header);  // group
  SetNumber(124, 12, size, &header);
  SetNumber(136, 12, 0, &header);  // time
  header.replace(148, 8, 8, ' ');  // the checksum counts as spaces
  header[156] = '0';               // a file
  header.replace(kUstarAt, kUstar.size(), kUstar);
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  SetNumber(148, 7, sum, &header);
  header[154] = '\0';
  return header;
}

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

absl::StatusOr<std::string> MakeTar(io::FileSystem& files,
                                    const std::vector<std::pair<std::string, std::string>>& named) {
  std::string tar;
  for (const auto& [name, path] : named) {
    if (name.size() > kMaxName) {
      return absl::InvalidArgumentError(StrCat(path, ": its name is too long for an archive"));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path, kMaxProgramBytes));
    tar += MakeHeader(name, bytes.size());
    tar += bytes;
    tar.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  }
  tar.append(2 * kBlock, '\0');  // its end
  return tar;
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
  return MakeTar(files, named);
}

}  // namespace muster::launch::yarn
