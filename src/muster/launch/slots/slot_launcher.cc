#include "muster/launch/slots/slot_launcher.h"

namespace muster::launch::slots {
namespace {

constexpr int64_t kFormat = 1;
constexpr uint64_t kMaxRecordBytes = 4096;

absl::StatusOr<int64_t> ReadRecord(io::FileSystem& files, const std::string& path) {
  const auto text = io::ReadFile(files, path, kMaxRecordBytes);
  if (absl::IsNotFound(text.status())) return 0;
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(*text, path));
  formats::JsonFields fields(json, path);
  if (fields.Int("format", 0, 0, INT64_MAX) != kFormat) fields.Fail("\"format\" is not 1");
  const int64_t wanted = fields.Int("wanted_up_to", 0, 0, INT64_MAX);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return wanted;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlotLauncher>> SlotLauncher::Create(
    const SlotLauncherOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t wanted, ReadRecord(*options.files, options.record_path));
  return std::unique_ptr<SlotLauncher>(new SlotLauncher(options, wanted));
}

SlotLauncher::SlotLauncher(const SlotLauncherOptions& options, int64_t wanted_before)
    : options_(options),
      table_(wanted_before, now(), control::GoneAfterSeconds(options.lease_seconds)),
      kept_(wanted_before) {}

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
  if (table_.wanted_up_to() == kept_) return absl::OkStatus();
  const Json record = {{"format", kFormat}, {"wanted_up_to", table_.wanted_up_to()}};
  MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(*options_.files, options_.record_path,
                                                 formats::PrintJson(record) + "\n"));
  kept_ = table_.wanted_up_to();
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
