#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/cluster_tensorboard.h"
#include "muster/cli/jobs/event_mirror.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/io/path_scheme.h"
#include "muster/launch/kubernetes/place/tensorboard_plan.h"
#include "muster/process/child.h"
#include "muster/process/file_limit.h"

namespace muster::cli {
namespace {

constexpr double kPythonSeconds = 60;  // for a Python on a slow disk to answer
constexpr int kNoTensorBoard = 3;
constexpr int kTensorBoardPort = 6006, kMaxPort = 65535;
constexpr double kCopySeconds = 5;  // between two looks at remote events
constexpr double kLookSeconds = 0.5;
constexpr double kEndSeconds = 5;  // for TensorBoard to end
constexpr char kLook[] =
    "import importlib.util as u; raise SystemExit(0 if u.find_spec('tensorboard') else 3)";

struct TensorBoardFlags {
  std::string place, model_dir, python;  // place: a job or a model folder
  std::vector<std::string> arguments;    // TensorBoard's arguments
  WhereFlags where;
  std::string image;  // of a cluster
  std::optional<int> port;
};

// Returns the first of the job's programs that is a Python interpreter of this machine, else the
// one in the PATH.
std::string GetPython(formats::JsonFields& job) {
  for (const auto& [type, program] : job.Object("programs").items()) {
    if (!program.is_string()) continue;
    const std::string path = program.get<std::string>();
    const bool is_here =
        path.find('/') == std::string::npos || (path[0] == '/' && access(path.c_str(), X_OK) == 0);
    if (is_here && io::Basename(path).starts_with("python")) return path;
  }
  return "python3";
}

absl::Status CheckTensorBoard(const std::string& python) {
  process::ChildSpec spec = {.argv = {python, "-c", kLook},
                             .environment = process::CurrentEnvironment()};
  spec.stdout_fd = STDERR_FILENO;
  constexpr std::string_view kAdvice = "name a Python that has TensorBoard with --python";
  const auto child = process::Child::Start(spec);
  if (!child.ok()) return Annotate(child.status(), kAdvice);
  MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit, (*child)->Wait(kPythonSeconds));
  if (exit.ok()) return absl::OkStatus();
  if (exit.code != kNoTensorBoard) {
    return absl::FailedPreconditionError(
        StrCat(python, " does not run: ", process::DescribeExit(exit), "; ", kAdvice));
  }
  return absl::FailedPreconditionError(StrCat(python, " has no TensorBoard: install it with\n  ",
                                              python, " -m pip install tensorboard\nor ", kAdvice));
}

// Replaces this process by TensorBoard.
absl::Status Become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  process::RestoreFileLimit();
  execvp(arguments[0], arguments.data());
  return ErrnoStatus(errno, StrCat("cannot run ", command[0]));
}

bool IsRemote(const std::string& folder) { return !io::LocalPath(folder).ok(); }

// A folder of this machine that is removed in the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "muster-tensorboard-XXXXXX");
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;  // "": it could not be made
};

// Runs TensorBoard on a copy of the events of `folder`, which follows them until TensorBoard or
// this process is to end.
absl::Status ShowCopy(const std::string& folder, std::vector<std::string> command) {
  const TemporaryFolder copy;
  if (copy.path().empty()) return ErrnoStatus(errno, "make a folder for a copy of the events");
  const InterruptScope interrupt;
  const auto files = files::OpenFileSystems();
  EventMirror mirror(*files, folder, copy.path());
  MUSTER_RETURN_IF_ERROR(mirror.Update());
  std::fprintf(stderr, "The events of %s are copied to this machine every %.0f s\n", folder.c_str(),
               kCopySeconds);
  std::replace(command.begin(), command.end(), folder, copy.path());
  MUSTER_ASSIGN_OR_RETURN(const auto child,
                          process::Child::Start({.argv = std::move(command),
                                                 .environment = process::CurrentEnvironment()}));
  absl::Status last;
  for (double next = kCopySeconds; !InterruptScope::requested(); next -= kLookSeconds) {
    const auto ended = child->Wait(kLookSeconds);
    if (ended.ok() && ended->ok()) return absl::OkStatus();
    if (ended.ok()) {
      return absl::FailedPreconditionError(
          StrCat("TensorBoard ended with ", process::DescribeExit(*ended)));
    }
    if (next > 0) continue;
    next = kCopySeconds;
    const absl::Status copied = mirror.Update();
    if (!copied.ok() && copied != last) {
      std::fprintf(stderr, "muster: %s\n", std::string(copied.message()).c_str());
    }
    last = copied;
  }
  child->SignalGroup(SIGTERM).IgnoreError();
  child->Wait(kEndSeconds).IgnoreError();
  return absl::OkStatus();
}

// Whether `place` is an existing folder, or a path of nothing yet: no job has such a name.
bool IsFolder(const std::string& place) {
  const auto info = files::OpenFileSystems()->Stat(place);
  return info.ok() ? info->is_folder : place.find('/') != std::string::npos;
}

// Says why `place`, which is no job, is no folder either.
std::string DescribeNoFolder(const std::string& place) {
  if (!files::OpenFileSystems()->Stat(place).ok()) return StrCat("there is no folder ", place);
  return StrCat(place, " is a file: give its folder, ", io::Dirname(place));
}

// The folder that TensorBoard shows, and the Python that runs it.
struct Shown {
  std::string model_dir, python = "python3";
};

absl::StatusOr<Shown> FindShown(const TensorBoardFlags& flags) {
  if (flags.place.empty()) return Shown{.model_dir = flags.model_dir};
  const bool is_path = flags.place.find('/') != std::string::npos;
  if (is_path && !IsFolder(flags.place)) return absl::NotFoundError(DescribeNoFolder(flags.place));
  const auto place = OpenJob(flags.place, flags.where);
  if (!place.ok() && flags.model_dir.empty() && IsFolder(flags.place)) {
    return Shown{.model_dir = flags.place};
  }
  if (absl::IsNotFound(place.status()) && !flags.where.is_elsewhere()) {
    return absl::NotFoundError(
        StrCat(place.status().message(), "; ", DescribeNoFolder(flags.place)));
  }
  MUSTER_RETURN_IF_ERROR(place.status());
  MUSTER_ASSIGN_OR_RETURN(const formats::Json job, (*place)->Describe());
  formats::JsonFields fields(job, "job");
  Shown shown = {.model_dir = flags.model_dir, .python = GetPython(fields)};
  if (shown.model_dir.empty()) shown.model_dir = fields.Text("model_dir");
  if (!shown.model_dir.empty()) return shown;
  return absl::FailedPreconditionError(
      StrCat("the job ", flags.place,
             " names no model folder: give it here or to muster run with --model-dir, or in a "
             "TFJob as the annotation muster/modelDir"));
}

absl::Status RunTensorBoard(const TensorBoardFlags& flags) {
  if (!flags.place.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const auto job, FindClusterJob(flags.place, flags.where));
    if (job) {
      if (!flags.python.empty()) {
        throw CLI::ValidationError("--python",
                                   StrCat("the job ", flags.place,
                                          " runs in a cluster, where the Python of the image shows "
                                          "it: give --image"));
      }
      return ShowInCluster(*job, {.model_dir = flags.model_dir,
                                  .image = flags.image,
                                  .port = flags.port.value_or(kTensorBoardPort),
                                  .arguments = flags.arguments});
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const Shown shown, FindShown(flags));
  const std::string python = flags.python.empty() ? shown.python : flags.python;
  MUSTER_RETURN_IF_ERROR(CheckTensorBoard(python));
  std::vector<std::string> command = {python, "-m", "tensorboard.main", "--logdir",
                                      shown.model_dir};
  if (flags.port) command.push_back(StrCat("--port=", *flags.port));
  command.insert(command.end(), flags.arguments.begin(), flags.arguments.end());
  return IsRemote(shown.model_dir) ? ShowCopy(shown.model_dir, std::move(command))
                                   : Become(command);
}

}  // namespace

void AddTensorBoard(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<TensorBoardFlags>();
  flags->arguments = arguments;
  CLI::App* verb = app.add_subcommand(
      "tensorboard", "Show a model folder or a job in TensorBoard, also in its cluster");
  verb->footer(
      "TensorBoard's own flags stand after --. Of a model folder on HDFS it shows a copy of the "
      "events, which follows them.\n"
      "Examples:\n"
      "  muster tensorboard model\n"
      "  muster tensorboard hdfs:///user/me/model\n"
      "  muster tensorboard train-5f3a1 --port 7007 --python venv/bin/python\n"
      "  muster tensorboard train-5f3a1 --on yarn\n"
      "  muster tensorboard mnist --on kubernetes --namespace training");
  auto* const place =
      verb->add_option("place", flags->place, "The model folder, or a job as muster list shows it");
  place->type_name("FOLDER or JOB");
  verb->add_option("--model-dir", flags->model_dir, "The folder (default: that of muster run)")
      ->type_name("FOLDER");
  verb->add_option("--python", flags->python,
                   "The Python that has TensorBoard (default: the job's own, else python3)")
      ->type_name("PROGRAM");
  AddWhereFlags(*verb, &flags->where);
  verb->add_option("--image", flags->image,
                   StrCat("For a job of a cluster: an image that has TensorBoard (default: ",
                          launch::kubernetes::kTensorBoardImage, ")"))
      ->type_name("IMAGE");
  verb->add_option("--port", flags->port,
                   StrCat("The port of this machine; 0: any that is free (default: ",
                          kTensorBoardPort, ", or TensorBoard's own choice)"))
      ->check(CLI::Range(0, kMaxPort))
      ->type_name("PORT");
  Group(*verb, kCluster, {"--image"});
  verb->callback([flags] {
    if (flags->where.is_elsewhere() && flags->place.empty()) throw CLI::RequiredError("A job");
    if (flags->place.empty() && flags->model_dir.empty()) {
      throw CLI::RequiredError("A model folder or a job");
    }
    FailUnlessOk(RunTensorBoard(*flags));
  });
}

}  // namespace muster::cli
