// The coordinator's state in the journal: how it is written, and how the next coordinator continues
// from it.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/control/coordinator.h"
#include "muster/control/status_json.h"
#include "muster/job/manifest.h"

namespace muster::control {
namespace {

using formats::JsonFields;

constexpr int64_t kFormat = 1;

Json OptionsJson(const CoordinatorOptions& options) {
  return {{"lease_seconds", options.lease_seconds},
          {"rendezvous_seconds", options.rendezvous_seconds},
          {"grace_seconds", options.grace_seconds},
          {"gang_seconds", options.gang_seconds},
          {"evaluator_in_cluster", options.tf_config.evaluator_in_cluster},
          {"master_as_chief", options.tf_config.master_as_chief},
          {"working_directory", options.working_directory},
          {"task_folders", options.task_folders},
          {"tony_environment", options.tony_environment}};
}

CoordinatorOptions ParseOptions(JsonFields& state) {
  JsonFields fields(state.Object("options"), "journal: options");
  CoordinatorOptions options;
  options.lease_seconds = fields.Number("lease_seconds", options.lease_seconds);
  options.rendezvous_seconds = fields.Number("rendezvous_seconds", options.rendezvous_seconds);
  options.grace_seconds = fields.Number("grace_seconds", options.grace_seconds);
  options.gang_seconds = fields.Number("gang_seconds", options.gang_seconds);
  options.tf_config.evaluator_in_cluster = fields.Bool("evaluator_in_cluster", false);
  options.tf_config.master_as_chief = fields.Bool("master_as_chief", false);
  options.working_directory = fields.Text("working_directory");
  options.task_folders = fields.Text("task_folders");
  options.tony_environment = fields.Bool("tony_environment", false);
  state.Update(fields.status());
  return options;
}

std::map<std::string, std::vector<std::string>> GetTexts(JsonFields& state, const char* member) {
  JsonFields fields(state.Object(member), StrCat("journal: ", member));
  std::map<std::string, std::vector<std::string>> texts;
  for (const auto& [name, value] : state.Object(member).items()) {
    texts[name] = fields.Texts(name.c_str());
  }
  state.Update(fields.status());
  return texts;
}

}  // namespace

absl::StatusOr<job::JobSpec> ParseJobSpec(const Json& state) {
  JsonFields fields(state, "journal");
  const std::string manifest = fields.Text("manifest");
  if (fields.Int("format", 0, 0, kFormat) != kFormat) {
    fields.Fail("is empty or of another version of muster");
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_ASSIGN_OR_RETURN(job::Manifest read, job::ParseManifest(manifest, "journal: manifest"));
  return std::move(read.spec);
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Resume(const Environment& environment) {
  const Json& state = environment.journal->state();
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, ParseJobSpec(state));
  JsonFields fields(state, "journal");
  MUSTER_ASSIGN_OR_RETURN(auto coordinator, New(spec, ParseOptions(fields), environment));
  MUSTER_ASSIGN_OR_RETURN(coordinator->status_,
                          StatusFromJson(fields.Object("status"), "journal: status"));
  for (const auto& [name, address] : fields.Object("addresses").items()) {
    const auto task = job::ParseTaskName(name);
    if (task && address.is_string()) coordinator->addresses_[*task] = address.get<std::string>();
  }
  coordinator->last_lines_ = GetTexts(fields, "last_lines");
  coordinator->diagnoses_ = GetTexts(fields, "diagnoses");
  for (const auto& [name, note] : fields.Object("notes").items()) {
    if (note.is_string()) coordinator->notes_[name] = note.get<std::string>();
  }
  coordinator->last_steps_ = fields.Object("last_steps");
  coordinator->lost_checkpoints_ = fields.List("lost_checkpoints");
  coordinator->generation_ = fields.Int("generation", 0, 0, 1 << 30) + 1;
  MUSTER_RETURN_IF_ERROR(fields.status());
  for (const auto& [id, task] : coordinator->status_.tasks) {
    if (!task.live()) continue;
    Agent& agent = coordinator->GetAgent(id, task.incarnation);
    agent.answered_at = coordinator->now();  // by the last coordinator, at the latest
    if (task.phase == job::TaskPhase::kStarting) continue;
    agent.adopted = true;
    agent.last_heard = coordinator->now();
  }
  return coordinator;
}

Json Coordinator::State(const job::JobStatus& status) const {
  Json state = {{"format", kFormat},
                {"manifest", job::PrintManifest(spec_)},
                {"options", OptionsJson(options_)},
                {"status", ToJson(status)},
                {"addresses", Json::object()},
                {"last_lines", last_lines_},
                {"diagnoses", diagnoses_},
                {"last_steps", last_steps_},
                {"lost_checkpoints", lost_checkpoints_},
                {"generation", generation_},
                {"notes", Json::object()}};
  for (const auto& [task, address] : addresses_) {
    state["addresses"][job::TaskName(task)] = address;
  }
  for (const auto& [name, note] : notes_) state["notes"][name] = note;
  return state;
}

absl::Status Coordinator::WriteDown(const job::JobStatus& status) {
  MUSTER_RETURN_IF_ERROR(environment_.journal->Append(State(status)));
  is_written_ = true;
  return absl::OkStatus();
}

}  // namespace muster::control
