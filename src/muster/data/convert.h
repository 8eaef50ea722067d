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
  formats::DataFormat format;       // settings that it lacks are found from the files' content
  formats::Schema schema;           // one feature for each field
  // Fields that the rows may lack, such as the label of data to predict. If one is missing and the
  // header has no similar name, it is left out of all part files.
  std::vector<std::string> may_lack;
  PartFilesSpec output;
  std::function<void(const std::string& note)> note;  // as SourceSpec::note
  uint64_t max_bad_records = 0;  // how many rows that do not fit the schema may be left out
};

struct ConversionCounts {
  uint64_t rows = 0;                 // written
  uint64_t bad_records = 0;          // left out
  uint64_t bytes = 0;                // bytes on disk; known at the end
  std::vector<std::string> lacking;  // fields of may_lack that the data does not have
};

// Called every few thousand rows; an error from it stops the work and is returned.
using ConversionProgress = std::function<absl::Status(const ConversionCounts&)>;

// Reads row after row of all files in order, and distributes them round robin over the part files.
// Memory does not depend on the files' sizes. After an error no part file is left. Errors of rows
// name FILE:LINE, column and value. INVALID_ARGUMENT if there are no rows.
absl::StatusOr<ConversionCounts> ConvertCsv(io::FileSystem& files, const ConversionSpec& spec,
                                            const ConversionProgress& progress = {});

}  // namespace muster::data
