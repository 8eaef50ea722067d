// Profiles data in one pass over files about which nothing need be known: what each column holds,
// and how the files must be read. `muster init` and `muster records stats` print it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/profile/column_profile.h"
#include "muster/data/source.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct ProfileSpec {
  std::vector<std::string> patterns;
  formats::DataFormat format = {};  // the settings that are known
  SourceSchemes schemes = {};       // as SourceSpec::schemes
  // The label, a column that must exist, and whose cells are not taken for lists; "": any
  std::string wanted = {};
  // As ColumnProfiler's `dates`.
  formats::DateOrder dates = formats::DateOrder::kUnknown;
  uint64_t max_bad_records = 0;
  std::function<void(const std::string& note)> note = {};  // as SourceSpec::note
  // Called after each batch with the number of rows so far; an error ends the pass.
  std::function<absl::Status(uint64_t rows)> progress = {};
};

struct Profile {
  formats::FileFormat type = formats::FileFormat::kCsv;
  bool is_parquet = false;          // `type` then means nothing
  formats::DataFormat format = {};  // as FoundColumns::format
  std::vector<ColumnProfile> columns = {};
  std::vector<std::string> left_out = {};  // as FoundColumns::left_out
  uint64_t rows = 0;
  uint64_t bad_rows = 0;  // rows that were left out

  const ColumnProfile* Find(const std::string& name) const;  // null if there is none
  std::vector<std::string> names() const;
  std::string_view format_name() const;   // "jsonl", as in a model file, or "parquet"
  std::string_view format_words() const;  // "JSON lines"
};

// Errors are those of FindColumns and of reading the files.
absl::StatusOr<Profile> ProfileData(io::FileSystem& files, const ProfileSpec& spec);

}  // namespace muster::data
