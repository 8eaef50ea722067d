// parquet_ours FOLDER PYTHON: reads the table that bench/parquet.py writes to batches of columns,
// and prints sums that its peer prints, too.
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "muster/data/parquet/parquet_set.h"
#include "muster/data/reader.h"
#include "muster/io/local_file_system.h"

namespace muster::bench {
namespace {

using formats::ValueType;

constexpr int kInts = 6, kFloats = 4, kTexts = 4;
constexpr int kBatchRows = 512;

void AddField(const std::string& name, ValueType type, formats::Schema* schema) {
  formats::Field& field = schema->fields.emplace_back();
  field.name = name;
  field.type = type;
}

formats::Schema TableSchema() {
  formats::Schema schema;
  for (int i = 0; i < kInts; ++i) {
    AddField(StrCat("i", i), ValueType::kInt, &schema);
    schema.fields.back().has_default = true;
    schema.fields.back().default_value = int64_t{0};
  }
  for (int i = 0; i < kFloats; ++i) AddField(StrCat("f", i), ValueType::kFloat, &schema);
  for (int i = 0; i < kTexts; ++i) AddField(StrCat("s", i), ValueType::kString, &schema);
  AddField("bag", ValueType::kInt, &schema);
  schema.fields.back().list = true;
  return schema;
}

absl::Status Run(const std::string& folder, const std::string& python) {
  const formats::Schema schema = TableSchema();
  const auto set = data::NewParquetSet(
      {.open_files = [] { return std::shared_ptr<io::FileSystem>(io::NewLocalFileSystem()); },
       .python = python});
  const data::SourceSpec spec = {.patterns = {folder}};
  MUSTER_ASSIGN_OR_RETURN(auto sources, set->OpenShards(spec, std::span(&spec.shard, 1), 0));
  MUSTER_ASSIGN_OR_RETURN(auto reader, data::BatchReader::Create(std::move(sources.front()), schema,
                                                                 {.batch_size = kBatchRows}));
  formats::Columns columns(schema);
  int64_t rows = 0, ints = 0, bytes = 0;
  double floats = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&columns));
    if (!more) break;
    rows += columns.rows();
    for (const formats::Column& column : columns.columns()) {
      ints = std::accumulate(column.ints.begin(), column.ints.end(), ints);
      floats = std::accumulate(column.floats.begin(), column.floats.end(), floats);
      for (const std::string_view text : column.strings) bytes += std::ssize(text);
    }
  }
  std::printf("{\"rows\": %lld, \"ints\": %lld, \"floats\": %.3e, \"bytes\": %lld}\n",
              static_cast<long long>(rows), static_cast<long long>(ints), floats,
              static_cast<long long>(bytes));
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: parquet_ours FOLDER PYTHON\n");
    return 2;
  }
  const absl::Status status = muster::bench::Run(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
