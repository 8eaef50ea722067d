#include "muster/cli/jobs/dry_run.h"

#include "absl/strings/str_join.h"

#include "muster/job/pod_template.h"
#include "muster/job/tf_config.h"
#include "muster/process/identity.h"

namespace muster::cli {
namespace {

job::Cluster NamedCluster(const job::JobSpec& spec) {
  job::Cluster cluster;
  for (const auto& [type, replica] : spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) {
      const job::TaskId task = {type, index};
      cluster[task] = StrCat(job::TaskName(task), ":", job::kDefaultPort);
    }
  }
  return cluster;
}

// Quotes a word so that a shell reads it unchanged.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

absl::StatusOr<std::string> DescribeTasks(const JobRequest& request) {
  const job::Cluster cluster = NamedCluster(request.spec);
  const std::string node = process::ThisProcess().host;
  std::string text;
  for (const auto& [task, address] : cluster) {
    const auto& replica = request.spec.replicas.at(task.type);
    MUSTER_ASSIGN_OR_RETURN(const job::Process process, job::ParseProcess(replica.pod_template));
    MUSTER_ASSIGN_OR_RETURN(const std::string tf_config,
                            job::TfConfig(request.spec, cluster, task, request.options.tf_config));
    const auto values = job::PlaceholdersFor(request.spec, cluster, task, node);
    const auto line = [&text](std::string_view name, std::string_view value) {
      text += StrCat("  ", name, std::string(name.size() < 10 ? 10 - name.size() : 1, ' '), value,
                     "\n");
    };
    text += StrCat(job::TaskName(task), "\n");
    line("command", absl::StrJoin(process.command, " ", [&](std::string* out, const auto& word) {
           *out += Quoted(job::ExpandPlaceholders(word, values));
         }));
    for (const auto& [name, value] : process.env) {
      line("env", StrCat(name, "=", Quoted(job::ExpandPlaceholders(value, values))));
    }
    line("folder", process.working_directory.empty() ? request.options.working_directory
                                                     : process.working_directory);
    if (process.gpus > 0) line("GPUs", StrCat(process.gpus));
    if (!tf_config.empty()) line("TF_CONFIG", tf_config);
  }
  return text;
}

}  // namespace muster::cli
