#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/process/child.h"
#include "muster/process/file_limit.h"

namespace muster::cli {
namespace {

constexpr double kPythonSeconds = 60;  // for a Python on a slow disk to answer
constexpr int kNoTensorBoard = 3;
constexpr char kLook[] =
    "import importlib.util as u; raise SystemExit(0 if u.find_spec('tensorboard') else 3)";

struct TensorBoardFlags {
  std::string place, model_dir, python;  // place: a job or a model folder
  std::vector<std::string> arguments;    // TensorBoard's arguments
};

// Returns the first of the job's programs that is a Python interpreter, else the one in the PATH.
std::string GetPython(formats::JsonFields& job) {
  for (const auto& [type, program] : job.Object("programs").items()) {
    if (!program.is_string()) continue;
    const std::string path = program.get<std::string>();
    if (io::Basename(path).starts_with("python")) return path;
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

// Whether `place` is an existing folder or a path: no job has such a name.
bool IsFolder(const std::string& place) {
  const auto info = files::OpenFileSystems()->Stat(place);
  return place.find('/') != std::string::npos || (info.ok() && info->is_folder);
}

// The folder that TensorBoard shows, and the Python that runs it.
struct Shown {
  std::string model_dir, python = "python3";
};

absl::StatusOr<Shown> FindShown(const TensorBoardFlags& flags) {
  if (flags.place.empty()) return Shown{.model_dir = flags.model_dir};
  const auto place = OpenJob(flags.place);
  if (!place.ok() && flags.model_dir.empty() && IsFolder(flags.place)) {
    return Shown{.model_dir = flags.place};
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
  MUSTER_ASSIGN_OR_RETURN(const Shown shown, FindShown(flags));
  const std::string python = flags.python.empty() ? shown.python : flags.python;
  MUSTER_RETURN_IF_ERROR(CheckTensorBoard(python));
  std::vector<std::string> command = {python, "-m", "tensorboard.main", "--logdir",
                                      shown.model_dir};
  command.insert(command.end(), flags.arguments.begin(), flags.arguments.end());
  return Become(command);
}

}  // namespace

void AddTensorBoard(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<TensorBoardFlags>();
  flags->arguments = arguments;
  CLI::App* verb = app.add_subcommand(
      "tensorboard", "Show a model folder or a job's in TensorBoard, by your Python");
  verb->footer(
      "TensorBoard's own flags stand after --.\n"
      "Examples:\n"
      "  muster tensorboard model\n"
      "  muster tensorboard train-5f3a1 --python venv/bin/python -- --port 7007");
  auto* const place =
      verb->add_option("place", flags->place, "The model folder, or a job as muster list shows it");
  place->type_name("FOLDER or JOB");
  verb->add_option("--model-dir", flags->model_dir, "The folder (default: that of muster run)")
      ->type_name("FOLDER");
  verb->add_option("--python", flags->python,
                   "The Python that has TensorBoard (default: the job's own, else python3)")
      ->type_name("PROGRAM");
  verb->callback([flags] {
    if (flags->place.empty() && flags->model_dir.empty()) {
      throw CLI::RequiredError("A model folder or a job");
    }
    FailUnlessOk(RunTensorBoard(*flags));
  });
}

}  // namespace muster::cli
