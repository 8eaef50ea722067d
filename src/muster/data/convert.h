// Converts CSV files (or JSON lines) to a set of TFRecord part files of tf.Example.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/part_file_writer.h"
#include "muster/formats/data_format.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

struct ConversionSpec {
  std::vector<std::string> inputs;  // files or globs, plain or compressed
  formats::DataFormat format;       // what it does not say is found from the files' content
  formats::Schema schema;           // one feature per field
  // Fields that the rows may be without, such as the label of data to predict. One that is missing
  // where the header has no word like it is left out of all part files.
  std::vector<std::string> may_lack;
  PartFilesSpec output;
  std::function<void(const std::string& note)> note;  // as SourceSpec::note
  uint64_t max_bad_records = 0;  // limit of rows that do not fit the schema and are left out
};

struct ConversionCounts {
  uint64_t rows = 0;                 // written
  uint64_t bad_records = 0;          // left out
  uint64_t bytes = 0;                // written to disk, known at the end
  std::vector<std::string> lacking;  // fields of may_lack that the data does not have
};

// Called every few thousand rows; an error from it stops the work and is returned.
using ConversionProgress = std::function<absl::Status(const ConversionCounts&)>;

// Rows are read file after file and distributed round robin over the part files. Memory does not
// depend on the files' sizes. After an error no part file is left. Row errors name FILE:LINE,
// column and value; INVALID_ARGUMENT also when there are no rows.
absl::StatusOr<ConversionCounts> ConvertCsv(io::FileSystem& files, const ConversionSpec& spec,
                                            const ConversionProgress& progress = {});

}  // namespace muster::data
