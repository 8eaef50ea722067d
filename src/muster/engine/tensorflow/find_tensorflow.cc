#include "muster/engine/tensorflow/find_tensorflow.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/strip.h"

#include "muster/process/capture.h"
#include "muster/process/child.h"

namespace muster::engine::tensorflow {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libtensorflow_cc.so.2";
constexpr const char* kVariable = "MUSTER_TENSORFLOW";
constexpr const char* kAdvice =
    "install it (pip install tensorflow-cpu) or name its folder with --tensorflow or "
    "MUSTER_TENSORFLOW";
constexpr double kPythonSeconds = 60;
constexpr size_t kPythonBytes = 64 << 10;
// Does not import TensorFlow, which would take seconds.
constexpr const char* kQuestion =
    "import importlib.util as u\n"
    "s = u.find_spec('tensorflow')\n"
    "print('folder:' + (s.submodule_search_locations[0] if s else ''))\n";

bool HasLibrary(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kLibrary, ignored);
}

// Finds the package's folder in or below a folder that the user named.
std::optional<std::string> FindIn(const fs::path& folder) {
  if (HasLibrary(folder)) return folder.string();
  if (HasLibrary(folder / "tensorflow")) return (folder / "tensorflow").string();
  std::error_code error;
  std::vector<fs::path> pythons;
  for (fs::directory_iterator each(folder / "lib", error), end; !error && each != end;
       each.increment(error)) {
    if (each->path().filename().string().starts_with("python")) pythons.push_back(each->path());
  }
  std::sort(pythons.begin(), pythons.end());
  for (const fs::path& python : pythons) {
    for (const char* const packages : {"site-packages", "dist-packages"}) {
      const fs::path found = python / packages / "tensorflow";
      if (HasLibrary(found)) return found.string();
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::string> AskPython(const std::string& python,
                                      const std::vector<std::string>& environment) {
  const process::ChildSpec spec = {.argv = {python, "-c", kQuestion}, .environment = environment};
  const auto run = process::RunCaptured(nullptr, spec, kPythonSeconds, kPythonBytes);
  if (!run.ok()) {
    return absl::NotFoundError(
        StrCat("looking for TensorFlow: ", run.status().message(), "; ", kAdvice));
  }
  if (run->timed_out || !run->exit.ok()) {
    return absl::NotFoundError(
        StrCat(python, " was asked where its tensorflow is: ",
               run->timed_out ? "no answer" : process::DescribeExit(run->exit), "; ", kAdvice));
  }
  const size_t at = run->output.rfind("folder:");
  std::string folder = at == std::string::npos ? "" : run->output.substr(at + 7);
  folder = std::string(absl::StripSuffix(folder, "\n"));
  if (folder.empty()) {
    return absl::NotFoundError(StrCat(python, " has no package tensorflow: ", kAdvice));
  }
  if (!HasLibrary(folder)) {
    return absl::NotFoundError(StrCat("the package tensorflow of ", python, ", ", folder,
                                      ", has no ", kLibrary,
                                      ": muster needs TensorFlow 2.16 or newer"));
  }
  return folder;
}

absl::StatusOr<std::string> FindNamed(const std::string& named, const char* by,
                                      const std::vector<std::string>& environment) {
  std::error_code ignored;
  if (fs::is_directory(named, ignored)) {
    if (const std::optional<std::string> found = FindIn(named)) return *found;
    return absl::NotFoundError(
        StrCat(by, " ", named, ": no ", kLibrary,
               " there: name the folder of the Python package tensorflow, 2.16 or newer"));
  }
  if (!fs::exists(named, ignored)) {
    return absl::NotFoundError(StrCat(by, " ", named, ": no such file or folder; ", kAdvice));
  }
  absl::StatusOr<std::string> found = AskPython(named, environment);
  if (!found.ok()) return Annotate(found.status(), by);
  return found;
}

}  // namespace

absl::StatusOr<std::string> FindTensorFlow(const std::string& named,
                                           const std::vector<std::string>& environment) {
  if (!named.empty()) return FindNamed(named, "--tensorflow", environment);
  const std::string variable = process::FindEnvironment(kVariable, environment).value_or("");
  if (!variable.empty()) return FindNamed(variable, kVariable, environment);
  return AskPython("python3", environment);
}

}  // namespace muster::engine::tensorflow
