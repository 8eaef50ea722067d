// Shared by the verbs that convert other files to TFRecord part files: output flags, progress on a
// terminal, stopping by Ctrl-C, and the result as text or JSON.
#pragma once

#include <functional>
#include <string>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/data/convert.h"
#include "muster/data/part_file_writer.h"
#include "muster/formats/columns.h"
#include "muster/io/file_system.h"

namespace muster::cli {

struct ConversionFlags {
  std::string folder;
  int shards = 1;
  std::string compression = "none";
  bool overwrite = false;
  bool json = false;
  bool quiet = false;

  data::PartFilesSpec output() const;
};

// --out, --shards, --compression, --overwrite, --json, --quiet.
void AddConversionFlags(CLI::App* verb, ConversionFlags* flags);

// INVALID_ARGUMENT if the folder of --out cannot be one.
absl::Status CheckOut(io::FileSystem& files, const ConversionFlags& flags);

// Runs `convert` with a callback that reports progress and can stop it, and prints the result.
// `rows` is what a record is called: "rows", "images".
absl::Status RunConversion(
    const ConversionFlags& flags, const std::string& rows,
    const std::function<absl::StatusOr<data::ConversionCounts>(const data::ConversionProgress&)>&
        convert);

// Writes the rows of all columns that `next` gives, round robin; `next` returns false after the
// last.
using NextColumns = std::function<absl::StatusOr<bool>(formats::Columns* columns)>;
absl::StatusOr<data::ConversionCounts> ConvertColumns(io::FileSystem& files,
                                                      const formats::Schema& schema,
                                                      const data::PartFilesSpec& output,
                                                      const NextColumns& next,
                                                      const data::ConversionProgress& progress);

}  // namespace muster::cli
