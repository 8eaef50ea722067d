#include "muster/control/place_record.h"

#include "muster/files/file_systems.h"
#include "muster/formats/json_fields.h"
#include "muster/io/private_file_system.h"

namespace muster::control {
namespace {

constexpr int64_t kFormat = 1;
constexpr uint64_t kMaxBytes = uint64_t{64} << 10;

}  // namespace

absl::StatusOr<PlaceRecord> ParsePlaceRecord(std::string_view text, const std::string& where) {
  MUSTER_ASSIGN_OR_RETURN(const formats::Json json, formats::ParseJsonObject(text, where));
  formats::JsonFields fields(json, where);
  const int64_t format = fields.Int("format", 0, 0, INT64_MAX);
  PlaceRecord record{.kind = fields.Text("kind"),
                     .id = fields.Text("id"),
                     .url = fields.Text("url"),
                     .staging = fields.Text("staging"),
                     .config = fields.Text("config"),
                     .context = fields.Text("context")};
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (format != kFormat) {
    return absl::InvalidArgumentError(StrCat(where, ": its format is ", format,
                                             ", and this muster reads format ", kFormat,
                                             ": use the muster that submitted the job"));
  }
  if (record.kind.empty()) return absl::InvalidArgumentError(StrCat(where, ": \"kind\" is empty"));
  return record;
}

std::string PrintPlaceRecord(const PlaceRecord& record) {
  formats::Json json = {{"format", kFormat}, {"kind", record.kind}};
  if (!record.id.empty()) json["id"] = record.id;
  if (!record.url.empty()) json["url"] = record.url;
  if (!record.staging.empty()) json["staging"] = record.staging;
  if (!record.config.empty()) json["config"] = record.config;
  if (!record.context.empty()) json["context"] = record.context;
  return formats::PrintJson(json) + "\n";
}

absl::StatusOr<PlaceRecord> ReadPlaceRecord(const JobFolder& folder) {
  const auto text = io::ReadFile(*files::OpenFileSystems(), folder.place(), kMaxBytes);
  if (absl::IsNotFound(text.status())) return PlaceRecord();
  MUSTER_RETURN_IF_ERROR(text.status());
  return ParsePlaceRecord(*text, folder.place());
}

absl::Status WritePlaceRecord(const JobFolder& folder, const PlaceRecord& record) {
  return io::WriteFileAtomically(*io::NewPrivateFileSystem(), folder.place(),
                                 PrintPlaceRecord(record));
}

}  // namespace muster::control
