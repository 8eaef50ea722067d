#include "muster/score/part_plan.h"

#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/data/source_set.h"
#include "muster/formats/json_fields.h"
#include "muster/score/exported_weights.h"

namespace muster::score {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr char kPlanName[] = "_parts.json";
constexpr uint64_t kMaxPlanBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxModelBytes = uint64_t{1} << 30;
constexpr int64_t kMaxParts = 1'000'000;
constexpr int64_t kMaxMultiple = 1 << 24;
constexpr int64_t kMaxRecords = int64_t{1} << 56;  // so that sums do not overflow
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string PlanPath(const std::string& folder) { return io::JoinPath(folder, kPlanName); }

// The path of the model file in the model's folder: model.yaml, or that of an exported Keras model.
std::string GetModelFile(io::FileSystem& files, const std::string& model_dir) {
  std::string exported = io::JoinPath(model_dir, "exported/model.json");
  return files.Stat(exported).ok() ? exported : io::JoinPath(model_dir, "model.yaml");
}

// Returns a checksum of the model file and of the checkpoint's index, which has the checksum of
// every tensor.
absl::StatusOr<std::string> GetFingerprint(io::FileSystem& files, const std::string& model_dir,
                                           const std::string& checkpoint) {
  uint32_t crc = 0;
  for (const std::string& path :
       {FindBundle(files, checkpoint) + ".index", GetModelFile(files, model_dir)}) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxModelBytes));
    crc = ExtendCrc32c(crc, text);
  }
  return absl::StrFormat("%08x", crc);
}

// Counts the records of each file if parts are whole files. If parts are shares of all records, the
// plan needs no counts.
absl::Status CountRecords(const data::SourceSet& set, const formats::DataFormat& format,
                          PartPlan* plan) {
  if (!plan->numbered || plan->by_record) return absl::OkStatus();
  for (PartPlan::File& file : plan->data) {
    const auto begin = static_cast<uint64_t>(file.begin);
    MUSTER_ASSIGN_OR_RETURN(const uint64_t records,
                            set.CountRecords({.name = file.path,
                                              .begin = begin,
                                              .end = begin + static_cast<uint64_t>(file.bytes),
                                              .modified_ns = file.modified_ns,
                                              .identity = file.identity},
                                             format));
    file.records = static_cast<int64_t>(records);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AllCanBeCut(const data::SourceSet& set,
                                 const std::vector<data::SourceItem>& items,
                                 const formats::DataFormat& format) {
  for (const data::SourceItem& item : items) {
    MUSTER_ASSIGN_OR_RETURN(const bool can, set.CanBeCut(item, format));
    if (!can) return false;
  }
  return true;
}

std::string DescribeData(const PartPlan& there, const PartPlan& wanted) {
  for (size_t i = 0; i < there.data.size() && i < wanted.data.size(); ++i) {
    if (there.data[i].path != wanted.data[i].path) {
      return StrCat("its file ", i, " is ", there.data[i].path, ", not ", wanted.data[i].path);
    }
    if (there.data[i] != wanted.data[i]) return StrCat(there.data[i].path, " has changed since");
  }
  return StrCat("it is of ", there.data.size(), " files of data, not ", wanted.data.size());
}

// Describes what differs from the folder's plan; "" if the folder's plan can be continued.
std::string Difference(const PartPlan& there, const PartPlan& wanted) {
  if (there.checkpoint != wanted.checkpoint) {
    return StrCat("it is of checkpoint ", there.checkpoint, ", not ", wanted.checkpoint,
                  "; to continue with it give --checkpoint ", there.checkpoint, ",");
  }
  if (there.fingerprint != wanted.fingerprint) {
    return StrCat("checkpoint ", there.checkpoint, " or its model file has changed since;");
  }
  if (there.settings != wanted.settings) {
    return StrCat("it was made with [", there.settings, "], not [", wanted.settings, "];");
  }
  return there.data == wanted.data ? "" : DescribeData(there, wanted) + ";";
}

absl::Status CheckNoParts(io::FileSystem& files, const std::string& folder) {
  const auto names = files.List(folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (!name.starts_with("part-")) continue;
    return absl::FailedPreconditionError(
        StrCat(folder, " has ", name, " and no ", kPlanName,
               ", the plan that it belongs to: give another folder, or empty this one"));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t PartPlan::GetFirstNumber(int part) const {
  uint64_t first = 0;
  if (by_record) return first;
  for (size_t i = 0; i < data.size() && i < static_cast<size_t>(part); ++i) {
    if (data[i].records > 0) first += static_cast<uint64_t>(data[i].records);
  }
  return first;
}

std::string Print(const PartPlan& plan) {
  Json data = Json::array();
  for (const PartPlan::File& file : plan.data) {
    Json& each = data.emplace_back(
        Json{{"path", file.path}, {"bytes", file.bytes}, {"modified_ns", file.modified_ns}});
    if (file.begin > 0) each["begin"] = file.begin;
    if (!file.identity.empty()) each["identity"] = file.identity;
    if (file.records >= 0) each["records"] = file.records;
  }
  return formats::PrintJson({{"version", 1},
                             {"checkpoint", plan.checkpoint},
                             {"fingerprint", plan.fingerprint},
                             {"settings", plan.settings},
                             {"suffix", plan.suffix},
                             {"parts", plan.parts},
                             {"by_record", plan.by_record},
                             {"multiple", plan.multiple},
                             {"data", std::move(data)}});
}

absl::StatusOr<PartPlan> ParsePartPlan(std::string_view text, std::string_view where) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(text, where));
  JsonFields fields(json, std::string(where));
  fields.Int("version", 0, 1, 1);
  if (!fields.Has("version")) fields.Fail("has no \"version\"");
  PartPlan plan = {.checkpoint = fields.Text("checkpoint"),
                   .fingerprint = fields.Text("fingerprint"),
                   .settings = fields.Text("settings"),
                   .suffix = fields.Text("suffix")};
  plan.parts = static_cast<int>(fields.Int("parts", 0, 1, kMaxParts));
  if (!fields.Has("parts")) fields.Fail("has no \"parts\"");
  plan.by_record = fields.Bool("by_record", false);
  plan.multiple = static_cast<int>(fields.Int("multiple", 1, 1, kMaxMultiple));
  for (const Json& each : fields.List("data")) {
    if (!each.is_object()) {
      fields.Fail("\"data\" must be a list of objects");
      break;
    }
    JsonFields file(each, StrCat(where, ": data"));
    plan.data.push_back({.path = file.Text("path"),
                         .begin = file.Int("begin", 0, 0, kMaxRecords),
                         .bytes = file.Int("bytes", 0, 0, kMax),
                         .modified_ns = file.Int("modified_ns", 0, -kMax, kMax),
                         .identity = file.Text("identity"),
                         .records = file.Int("records", -1, 0, kMaxRecords)});
    fields.Update(file.status());
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return plan;
}

absl::StatusOr<PartPlan> MakePartPlan(io::FileSystem& files, const PartPlanOptions& options) {
  PartPlan plan = {
      .checkpoint = options.checkpoint, .settings = options.settings, .suffix = options.suffix};
  plan.numbered = options.numbered;
  if (plan.checkpoint.empty()) {
    MUSTER_ASSIGN_OR_RETURN(plan.checkpoint, checkpoint::Latest(files, options.model_dir));
  }
  MUSTER_ASSIGN_OR_RETURN(plan.fingerprint,
                          GetFingerprint(files, options.model_dir, plan.checkpoint));
  MUSTER_ASSIGN_OR_RETURN(const auto set,
                          data::ChooseSourceSet(files, options.schemes, options.patterns));
  MUSTER_ASSIGN_OR_RETURN(const auto items, set->List(options.patterns));
  for (const data::SourceItem& item : items) {
    plan.data.push_back({.path = item.name,
                         .begin = static_cast<int64_t>(item.begin),
                         .bytes = static_cast<int64_t>(item.size()),
                         .modified_ns = item.modified_ns,
                         .identity = item.identity});
  }
  const auto count = static_cast<int>(plan.data.size());
  plan.by_record = count < options.processes;
  if (options.batch_size > 0) {
    MUSTER_ASSIGN_OR_RETURN(const bool can_be_cut, AllCanBeCut(*set, items, options.format));
    plan.by_record = plan.by_record || can_be_cut;
    if (plan.by_record) plan.multiple = options.batch_size;
  }
  plan.parts = plan.by_record ? options.processes : count;
  return plan;
}

absl::StatusOr<PartPlan> OpenPartPlan(io::FileSystem& files, const std::string& folder,
                                      const PartPlan& given, const data::SourceSpec& source) {
  PartPlan wanted = given;
  const auto text = io::ReadFile(files, PlanPath(folder), kMaxPlanBytes);
  if (absl::IsNotFound(text.status())) {
    MUSTER_RETURN_IF_ERROR(CheckNoParts(files, folder));
    MUSTER_ASSIGN_OR_RETURN(const auto set,
                            data::ChooseSourceSet(files, source.schemes, source.patterns));
    MUSTER_RETURN_IF_ERROR(CountRecords(*set, source.format, &wanted));
    MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
    MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(files, PlanPath(folder), Print(wanted)));
    return wanted;
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(PartPlan there, ParsePartPlan(*text, PlanPath(folder)));
  if (const std::string difference = Difference(there, wanted); !difference.empty()) {
    return absl::FailedPreconditionError(StrCat(folder, " holds other work: ", difference,
                                                " or give another folder, or remove this one"));
  }
  there.numbered = wanted.numbered;
  return there;
}

absl::Status RemoveUnusedPlan(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto names, files.List(folder));
  if (names != std::vector<std::string>{kPlanName}) return absl::OkStatus();
  return files.RemoveAll(folder);
}

std::string PartPath(const std::string& folder, const PartPlan& plan, int part) {
  return io::JoinPath(folder,
                      absl::StrFormat("part-%05d-of-%05d%s", part, plan.parts, plan.suffix));
}

absl::StatusOr<bool> PartIsDone(io::FileSystem& files, const std::string& folder,
                                const PartPlan& plan, int part) {
  const std::string path = PartPath(folder, plan, part);
  const absl::Status there = files.Stat(path).status();
  if (there.ok()) return true;
  if (!absl::IsNotFound(there)) return there;
  io::RemoveTemporaries(files, path);
  return false;
}

}  // namespace muster::score
