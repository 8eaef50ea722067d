// The records of files, or of standard input, one by one and as they are stored.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// Called with each record, which is valid during the call: a serialized tf.Example, a row of CSV or
// a JSON object.
using TakeRecord = std::function<absl::Status(std::string_view record)>;

// Reads all records of `patterns`, in order. "-", which must be alone, is standard input: a stream
// of batches (docs/formats/batch_stream.md), whose rows become tf.Examples, or lines of JSON or of
// CSV, which have no header unless `format` says so; TFRecord if `format` says so.
absl::Status FeedRecords(io::FileSystem& files, const std::vector<std::string>& patterns,
                         const formats::DataFormat& format, const TakeRecord& take);

}  // namespace muster::cli
