// SavedModelTables: lookup tables of vocabularies and of tables that grow.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"

#include "muster/features/fingerprint.h"
#include "muster/io/file_system.h"
#include "muster/model/saved_model/saved_model_features.h"

namespace muster::model {
namespace {

using features::ColumnSpec;
using formats::DataType;
using formats::IntAttr;
using formats::StringAttr;
using formats::TypeAttr;

// TensorFlow's lines end at CR or LF, so words must contain neither.
bool FitsLines(const std::vector<std::string>& words) {
  return std::none_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find_first_of("\r\n") != std::string::npos;
  });
}

// Within a process TensorFlow shares tables by name: equal names must mean equal contents.
std::string TableName(const ColumnSpec& column, DataType key_type) {
  uint64_t contents = static_cast<uint64_t>(key_type);
  for (const std::string& word : column.words) {
    contents = features::FingerprintCat64(contents, features::Fingerprint64(word));
  }
  return StrCat("hash_table_", column.name, "_", absl::StrFormat("%016x", contents));
}

}  // namespace

std::string SavedModelTables::Table(const ColumnSpec& column, DataType key_type) {
  if (const auto known = tables_.find(column.name); known != tables_.end()) return known->second;
  const std::string table =
      graph_.Node(StrCat("tables/", column.name), "HashTableV2", {},
                  {TypeAttr("key_dtype", key_type), TypeAttr("value_dtype", DataType::kInt64),
                   StringAttr("shared_name", TableName(column, key_type))});
  const bool from_file =
      key_type == DataType::kString && !column.words_file.empty() && FitsLines(column.words);
  initializers_.push_back(from_file ? InitializeFromFile(column, table)
                                    : InitializeFromWords(column, table, key_type));
  return tables_[column.name] = table;
}

int64_t SavedModelTables::DynamicRows(const std::string& variable) const {
  const auto found = dynamic_tables_.find(variable);
  return found == dynamic_tables_.end() ? 1 : std::ssize(found->second) + 1;
}

std::string SavedModelTables::DynamicTable(const std::string& variable, int64_t* size) {
  std::span<const int64_t> keys;
  if (const auto found = dynamic_tables_.find(variable); found != dynamic_tables_.end())
    keys = found->second;
  *size = std::ssize(keys);
  // A column may have the name of a variable, but no name begins with two slashes.
  std::string& known = tables_[StrCat("//", variable)];
  if (!known.empty()) return known;
  uint64_t contents = features::Fingerprint64(variable);
  for (const int64_t key : keys) {
    contents = features::FingerprintCat64(contents, static_cast<uint64_t>(key));
  }
  const std::string name = StrCat("grown_tables/", variable);
  known = graph_.Node(
      name, "HashTableV2", {},
      {TypeAttr("key_dtype", DataType::kInt64), TypeAttr("value_dtype", DataType::kInt64),
       StringAttr("shared_name", StrCat("grown_table_", absl::StrFormat("%016x", contents)))});
  // TensorFlow refuses a table without keys. Row 0 is then the row of zeros, which all keys get.
  constexpr int64_t kAnyKey = 0;
  if (keys.empty()) keys = {&kAnyKey, 1};
  std::vector<int64_t> rows(keys.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto count = std::ssize(keys);
  initializers_.push_back(
      graph_.Node(StrCat(name, "/table_init/LookupTableImportV2"), "LookupTableImportV2",
                  {known, graph_.Int64s(StrCat(name, "/keys"), keys, {count}),
                   graph_.Int64s(StrCat(name, "/rows"), rows, {count})},
                  {TypeAttr("Tin", DataType::kInt64), TypeAttr("Tout", DataType::kInt64)}));
  return known;
}

std::string SavedModelTables::InitializeFromWords(const ColumnSpec& column,
                                                  const std::string& table, DataType key_type) {
  const std::string name = StrCat("tables/", column.name);
  const int64_t size = static_cast<int64_t>(column.words.size());
  std::string keys;
  if (key_type == DataType::kString) {
    keys = graph_.Strings(StrCat(name, "/words"), column.words, {size});
  } else {
    std::vector<int64_t> numbers;
    for (const std::string& word : column.words) {
      numbers.push_back(features::ParseIntWord(word).value_or(0));
    }
    keys = graph_.Int64s(StrCat(name, "/words"), numbers, {size});
  }
  std::vector<int64_t> places(column.words.size());
  std::iota(places.begin(), places.end(), 0);
  return graph_.Node(StrCat(name, "/table_init/LookupTableImportV2"), "LookupTableImportV2",
                     {table, keys, graph_.Int64s(StrCat(name, "/places"), places, {size})},
                     {TypeAttr("Tin", key_type), TypeAttr("Tout", DataType::kInt64)});
}

std::string SavedModelTables::InitializeFromFile(const ColumnSpec& column,
                                                 const std::string& table) {
  constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  const std::string name = StrCat("tables/", column.name);
  Asset asset;
  for (const std::string& word : column.words) asset.contents += word + '\n';
  const std::string filename = io::Basename(column.words_file);
  asset.filename = filename;
  const auto taken = [&](const Asset& other) {
    return other.filename == asset.filename && other.contents != asset.contents;
  };
  for (int i = 1; std::any_of(assets_.begin(), assets_.end(), taken); ++i) {
    asset.filename = StrCat(i, "_", filename);
  }
  const std::vector<std::string> path = {asset.filename};
  asset.tensor = graph_.Strings(StrCat(name, "/asset_filepath"), path, {});
  assets_.push_back(asset);
  return graph_.Node(StrCat(name, "/table_init/InitializeTableFromTextFileV2"),
                     "InitializeTableFromTextFileV2", {table, asset.tensor},
                     {IntAttr("key_index", kWholeLine), IntAttr("value_index", kLineNumber),
                      IntAttr("vocab_size", static_cast<int64_t>(column.words.size())),
                      StringAttr("delimiter", "\t")});
}

}  // namespace muster::model
