// Formats of files that are recognised by their first bytes but are no files of records.
#pragma once

#include <string>
#include <string_view>

namespace muster::formats {

struct ForeignFormat {
  std::string_view name;  // "Apache Parquet"
  // A command that converts FILE to a readable file OUT.
  std::string_view way;
  // "" unless some verbs read it: "train reads by a name that ends in .parquet".
  std::string_view readers = {};
};

// Returns the format of a file that begins with `bytes`; null if it is not known. `is_text`: they
// are text, which the bytes of most of these formats are not, so that a text that begins with "ORC"
// is not taken for ORC.
const ForeignFormat* FindForeignFormat(std::string_view bytes, bool is_text);

// Returns "this is Apache Parquet, which muster does not read; convert it to CSV, JSON lines or
// TFRecord, for example: ...", with the file's path in the command.
std::string DescribeForeign(const ForeignFormat& format, std::string_view path);

}  // namespace muster::formats
