// Formats of files that are known by their first bytes and are not read.
#pragma once

#include <string>
#include <string_view>

namespace muster::formats {

struct ForeignFormat {
  std::string_view name;  // "Apache Parquet"
  // How to make what is read of it, where FILE is its path and OUT a new one.
  std::string_view way;
};

// The format that `bytes`, the first of a file, are; null if none is known. `is_text`: they are
// text, as those of most formats are not, so that a text that begins with "ORC" is none.
const ForeignFormat* FindForeignFormat(std::string_view bytes, bool is_text);

// "this is Apache Parquet, which is not read; make CSV, JSON lines or TFRecord of it, for example:
// ...", with the file's path in the commands.
std::string DescribeForeign(const ForeignFormat& format, std::string_view path);

}  // namespace muster::formats
