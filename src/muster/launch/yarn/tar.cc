#include "muster/launch/yarn/tar.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>

#include "muster/base/strings.h"

namespace muster::launch::yarn {
namespace {

constexpr size_t kBlock = 512, kMaxName = 99;
constexpr size_t kModeAt = 100, kOwnerAt = 108, kGroupAt = 116, kSizeAt = 124, kTimeAt = 136;
constexpr size_t kChecksumAt = 148, kKindAt = 156, kMagicAt = 257;
constexpr size_t kShortNumber = 8, kLongNumber = 12;  // bytes of a field
constexpr std::string_view kUstar("ustar\00000", 8);

// Bytes of whole blocks.
size_t RoundUp(size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// A field of a header: a number in octal digits, which a zero byte ends.
void SetNumber(size_t at, size_t size, uint64_t number, std::string* header) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(size - 1),
                static_cast<unsigned long long>(number));
  header->replace(at, size - 1, text, size - 1);
}

std::string MakeHeader(const TarEntry& entry) {
  std::string header(kBlock, '\0');
  header.replace(0, entry.name.size(), entry.name);
  SetNumber(kModeAt, kShortNumber, static_cast<uint64_t>(entry.mode), &header);
  SetNumber(kOwnerAt, kShortNumber, 0, &header);
  SetNumber(kGroupAt, kShortNumber, 0, &header);
  SetNumber(kSizeAt, kLongNumber, entry.bytes.size(), &header);
  SetNumber(kTimeAt, kLongNumber, 0, &header);
  header.replace(kChecksumAt, kShortNumber, kShortNumber, ' ');  // the checksum counts as spaces
  header[kKindAt] = '0';                                         // a file
  header.replace(kMagicAt, kUstar.size(), kUstar);
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  SetNumber(kChecksumAt, kShortNumber - 1, sum, &header);
  header[kChecksumAt + kShortNumber - 2] = '\0';
  return header;
}

}  // namespace

absl::StatusOr<std::string> MakeTar(const std::vector<TarEntry>& entries) {
  std::string tar;
  for (const TarEntry& entry : entries) {
    if (entry.name.size() > kMaxName) {
      return absl::InvalidArgumentError(
          StrCat(entry.name, ": this name is too long for an archive"));
    }
    tar += MakeHeader(entry);
    tar += entry.bytes;
    tar.resize(RoundUp(tar.size()));
  }
  tar.append(2 * kBlock, '\0');  // its end
  return tar;
}

absl::StatusOr<std::string> ReadFromTar(std::string_view tar, std::string_view name) {
  while (tar.size() >= kBlock && tar[0] != '\0') {
    const std::string_view found = tar.substr(0, tar.substr(0, kMaxName).find('\0'));
    const char* const digits = tar.data() + kSizeAt;
    const char* const last = digits + kLongNumber - 1;
    size_t size = 0;
    const auto [end, error] = std::from_chars(digits, last, size, 8);
    tar.remove_prefix(kBlock);
    if (error != std::errc() || end != last || size > tar.size()) {
      return absl::DataLossError("this is no archive of a job, or not the whole of one");
    }
    if (found == name) return std::string(tar.substr(0, size));
    tar.remove_prefix(std::min(RoundUp(size), tar.size()));
  }
  if (tar.size() < kBlock) return absl::DataLossError("the archive of a job is cut off");
  return absl::NotFoundError(StrCat(name, ": the job's archive has no such file"));
}

}  // namespace muster::launch::yarn
