#include "muster/model/spec/data_check.h"

#include <memory>
#include <string_view>
#include <utility>

#include "muster/base/strings.h"
#include "muster/formats/sniff.h"

namespace muster::model {
namespace {

using Content = formats::Sniffed::Content;

// Returns the beginning of a file that is not compressed.
std::string ReadBeginning(const io::RandomAccessFile& file) {
  constexpr size_t kBytes = 4096;
  std::string bytes(kBytes, '\0');
  const auto size = file.Read(0, bytes.size(), bytes.data());
  bytes.resize(size.ok() ? *size : 0);
  return bytes;
}

// Whether a text that is no YAML, or no map, has lines of a model file: with a colon and a space,
// or a colon at their end.
bool HasKeys(std::string_view text) {
  return text.find(": ") != std::string_view::npos || text.find(":\n") != std::string_view::npos;
}

}  // namespace

bool IsNamedAsData(const std::string& path) {
  return formats::GetNamedFormat(path).has_value() && !path.ends_with(".json");
}

bool LooksLikeData(io::FileSystem& files, const std::string& path) {
  auto opened = files.OpenForRead(path);
  if (!opened.ok()) return false;
  if (IsNamedAsData(path)) return true;
  const std::shared_ptr<const io::RandomAccessFile> file = *std::move(opened);
  const auto sniffed = formats::SniffFile(file);
  if (!sniffed.ok()) return false;
  if (sniffed->compression != formats::Compression::kNone) return true;
  switch (sniffed->content) {
    case Content::kTfRecord:
      return true;
    case Content::kJsonLines:
      return ReadBeginning(*file).find("\"inputs\"") == std::string::npos;
    case Content::kText:
      return sniffed->cells > 1 && !HasKeys(ReadBeginning(*file));
    case Content::kEmpty:
    case Content::kUnknown:
      break;
  }
  return false;
}

std::string DescribeDataAsModel(const std::string& path) {
  return StrCat(path, " is data, and no model file: muster init ", path,
                " --label COLUMN writes a model file from it");
}

}  // namespace muster::model
