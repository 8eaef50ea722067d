#include "muster/launch/slots/slot_launcher.h"

namespace muster::launch::slots {
namespace {

constexpr int64_t kFormat = 3;
constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;

absl::StatusOr<MayRun> ReadRecord(io::FileSystem& files, const std::string& path) {
  const auto text = io::ReadFile(files, path, kMaxRecordBytes);
  MayRun may_run;
  if (absl::IsNotFound(text.status())) return may_run;
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(*text, path));
  formats::JsonFields fields(json, path);
  if (fields.Int("format", 0, 0, INT64_MAX) != kFormat) {
    fields.Fail(StrCat("\"format\" is not ", kFormat));
  }
  for (const Json& each : fields.List("may_run")) {
    formats::JsonFields run(each, StrCat(path, ": may_run"));
    const auto task = job::ParseTaskName(run.Text("task"));
    if (!task) run.Fail("\"task\" names none");
    const int64_t incarnation = run.Int("incarnation", 0, 0, INT64_MAX);
    if (task) may_run[{*task, incarnation}] = run.Text("process");
    fields.Update(run.status());
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return may_run;
}

std::string PrintRecord(const MayRun& may_run) {
  Json record = {{"format", kFormat}, {"may_run", Json::array()}};
  for (const auto& [key, process] : may_run) {
    record["may_run"].push_back(
        {{"task", job::TaskName(key.first)}, {"incarnation", key.second}, {"process", process}});
  }
  return formats::PrintJson(record) + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlotLauncher>> SlotLauncher::Create(
    const SlotLauncherOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const MayRun before, ReadRecord(*options.files, options.record_path));
  return std::unique_ptr<SlotLauncher>(new SlotLauncher(options, before));
}

SlotLauncher::SlotLauncher(const SlotLauncherOptions& options, const MayRun& before)
    : options_(options),
      table_({.started_up_to = options.started_up_to, .may_run = before}, now(),
             control::GoneAfterSeconds(options.lease_seconds)) {}

control::LauncherTraits SlotLauncher::traits() const {
  return {.sees_ends = false, .lease_seconds = options_.lease_seconds};
}

void SlotLauncher::Start(const control::StartRequest& request) {
  table_.Want({.task = request.task,
               .incarnation = request.incarnation,
               .port = request.port,
               .port_required = request.port_required,
               .lease_seconds = request.lease_seconds,
               .cpus = request.process.cpus,
               .memory_bytes = request.process.memory_bytes,
               .gpus = request.process.gpus});
}

absl::Status SlotLauncher::Keep() {
  if (table_.is_kept()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(*options_.files, options_.record_path,
                                                 PrintRecord(table_.may_run())));
  // Whoever claims the job takes its journal first: what is written while that is there, is read.
  if (!options_.journal_path.empty()) {
    MUSTER_RETURN_IF_ERROR(options_.files->Stat(options_.journal_path).status());
  }
  table_.NoteKept();
  return absl::OkStatus();
}

absl::StatusOr<Json> SlotLauncher::Take(const Json& body) {
  MUSTER_ASSIGN_OR_RETURN(const ProviderReport report, ReportFromJson(body));
  const ProviderAnswer answer = table_.Take(report, now());
  MUSTER_RETURN_IF_ERROR(Keep());
  return ToJson(answer);
}

control::ServiceRoute SlotLauncher::Route() {
  return {.method = "POST", .path = "/v1/slots", .handle = [this](const Json& body) {
            return Take(body);
          }};
}

}  // namespace muster::launch::slots
