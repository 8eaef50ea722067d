#include "muster/control/tensorflow_hdfs.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/process/child.h"

namespace muster::control {
namespace {

constexpr char kVariable[] = "MUSTER_TENSORFLOW_HDFS";
constexpr char kLibrary[] = "libmuster-tensorflow-hdfs.so";

}  // namespace

std::string FindTensorFlowHdfs() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const char* const place : {"tensorflow-hdfs", "../lib/muster/tensorflow-hdfs"}) {
    const auto folder = (program.parent_path() / place).lexically_normal();
    if (access((folder / kLibrary).c_str(), R_OK) == 0) return folder.string();
  }
  return "";
}

void AddTensorFlowHdfs(const std::string& folder, std::vector<std::string>* environment) {
  if (folder.empty() || process::FindEnvironment(kVariable, *environment) == "off") return;
  std::string path = folder;
  const std::string others = process::FindEnvironment("PYTHONPATH", *environment).value_or("");
  for (const auto other : absl::StrSplit(others, ':', absl::SkipEmpty())) {
    if (other != folder) path += StrCat(":", std::string(other));
  }
  process::SetEnvironment("PYTHONPATH", path, environment);
  process::SetEnvironment(kVariable, StrCat(folder, "/", kLibrary), environment);
}

}  // namespace muster::control
