#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/cli/jobs/where_flags.h"
#include "muster/cli/jobs/yarn_flags.h"
#include "muster/files/file_systems.h"
#include "muster/io/file_system.h"
#include "muster/job/job_name.h"
#include "muster/launch/kubernetes/place/submission.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{2} << 20;

struct SubmitFlags {
  std::string file, name;
  WhereFlags where;
  YarnFlags yarn;
};

absl::Status SubmitFileToYarn(const SubmitFlags& flags) {
  JobFlags job;
  job.file = flags.file;
  job.name = flags.name;
  job.place = kYarnPlace;
  MUSTER_ASSIGN_OR_RETURN(const JobRequest request, MakeRequest(job));
  return SubmitToYarnAndFollow(request, flags.yarn, /*detach=*/true);
}

absl::Status Submit(const SubmitFlags& flags) {
  if (!flags.name.empty()) {
    RefuseUnlessOk(flags.where.is_yarn() ? job::CheckName(flags.name)
                                         : job::CheckClusterName(flags.name));
  }
  if (flags.where.is_yarn()) return SubmitFileToYarn(flags);
  RefuseYarnFlags(flags.yarn);
  const bool is_input = flags.file == "-";
  MUSTER_ASSIGN_OR_RETURN(
      const std::string text,
      io::ReadFile(*files::OpenFileSystems(), is_input ? "/dev/stdin" : flags.file, kMaxBytes));
  MUSTER_ASSIGN_OR_RETURN(
      launch::kubernetes::JobFile file,
      launch::kubernetes::ReadJobFile(text, is_input ? "standard input" : flags.file));
  if (!flags.name.empty()) file.job["metadata"]["name"] = flags.name;
  for (const std::string& note : file.notes) SayOfJob(note);
  MUSTER_RETURN_IF_ERROR(SubmitToCluster(file, flags.where));
  const std::string name = launch::kubernetes::GetName(file.job);
  std::printf("%s\n", name.c_str());
  SayNextSteps({StrCat("muster status ", name, " --watch"), StrCat("muster logs -f ", name),
                StrCat("muster stop ", name)});
  return absl::OkStatus();
}

}  // namespace

void AddSubmit(CLI::App& app) {
  const auto flags = std::make_shared<SubmitFlags>();
  CLI::App* verb =
      app.add_subcommand("submit", "Submit a TFJob file to a Kubernetes cluster or to YARN");
  verb->footer(
      "It prints the job's name, by which muster status, logs, stop and the others find it.\n"
      "Examples:\n"
      "  muster submit job.yaml --on kubernetes --namespace training\n"
      "  muster submit job.yaml --on yarn --queue research");
  verb->add_option("job", flags->file, "A TFJob file (YAML or JSON), - for standard input")
      ->required()
      ->type_name("FILE");
  verb->add_option("--name,--job", flags->name, "The job's name, instead of the file's");
  AddWhereFlags(*verb, &flags->where);
  AddYarnFlags(*verb, &flags->yarn);
  verb->get_option("--on")->required();
  verb->callback([flags] { FailUnlessOk(Submit(*flags)); });
}

}  // namespace muster::cli
