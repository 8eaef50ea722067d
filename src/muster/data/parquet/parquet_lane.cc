#include "muster/data/parquet/parquet_lane.h"

#include <limits>
#include <utility>

namespace muster::data {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr const char* kAnswer = "an answer of muster-parquet";
constexpr int64_t kMaxBytes = int64_t{1} << 40;

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParquetLane::Describe(const std::string& path) {
  Json request = Json::object();
  request["op"] = "describe";
  request["file"] = path;
  process::Descriptor none;
  MUSTER_ASSIGN_OR_RETURN(const Json answer, connection_->Call(request, &none));
  std::vector<uint64_t> rows;
  JsonFields fields(answer, kAnswer);
  for (const Json& each : fields.List("groups")) {
    if (!each.is_number_unsigned()) {
      return absl::DataLossError(StrCat(kAnswer, ": a row group has no number of rows"));
    }
    rows.push_back(each.get<uint64_t>());
  }
  return rows;
}

absl::StatusOr<std::vector<KnownColumn>> ParquetLane::DescribeColumns(const std::string& path) {
  Json request = Json::object();
  request["op"] = "columns";
  request["file"] = path;
  process::Descriptor none;
  MUSTER_ASSIGN_OR_RETURN(const Json answer, connection_->Call(request, &none));
  JsonFields fields(answer, kAnswer);
  std::vector<KnownColumn> columns;
  for (const Json& each : fields.List("columns")) {
    JsonFields column(each, kAnswer);
    KnownColumn& known = columns.emplace_back();
    known.name = column.Text("name");
    const std::string type = column.Text("type");
    if (type == "date") known.is_date = true;
    if (type == "date" || type == "string") known.type = formats::ValueType::kString;
    if (type == "int") known.type = formats::ValueType::kInt;
    if (type == "float") known.type = formats::ValueType::kFloat;
    MUSTER_RETURN_IF_ERROR(column.status());
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return columns;
}

absl::StatusOr<std::shared_ptr<const ParquetBlock>> ParquetLane::AskForRows(Json request,
                                                                            size_t columns) {
  std::vector<int64_t> free;
  {
    const std::lock_guard lock(mutex_);
    free = free_;
  }
  request["free"] = free;
  process::Descriptor memory;
  MUSTER_ASSIGN_OR_RETURN(const Json answer, connection_->Call(request, &memory));
  JsonFields fields(answer, kAnswer);
  if (fields.Int("rows", 0, 0, std::numeric_limits<int32_t>::max()) == 0) {
    MUSTER_RETURN_IF_ERROR(fields.status());
    return nullptr;
  }
  const int64_t number = fields.Int("segment", -1, 0, std::numeric_limits<int64_t>::max());
  const int64_t size = fields.Int("size", 0, 1, kMaxBytes);
  const Json& dropped = fields.List("dropped");
  MUSTER_RETURN_IF_ERROR(fields.status());
  const std::lock_guard lock(mutex_);
  for (const Json& each : dropped) {
    if (!each.is_number_integer()) continue;
    std::erase(free_, each.get<int64_t>());
    segments_.erase(each.get<int64_t>());
  }
  if (memory.valid()) {
    MUSTER_ASSIGN_OR_RETURN(segments_[number],
                            SharedSegment::Map(memory.get(), static_cast<uint64_t>(size)));
  } else if (std::erase(free_, number) == 0) {
    return absl::DataLossError(StrCat(kAnswer, ": it is in memory that is in use"));
  }
  MUSTER_ASSIGN_OR_RETURN(ParquetBlock block,
                          ParseParquetBlock(answer, columns, segments_[number]));
  return std::shared_ptr<const ParquetBlock>(
      new ParquetBlock(std::move(block)),
      [lane = shared_from_this(), number](const ParquetBlock* released) {
        delete released;
        lane->Release(number);
      });
}

void ParquetLane::Release(int64_t segment) {
  const std::lock_guard lock(mutex_);
  free_.push_back(segment);
}

}  // namespace muster::data
