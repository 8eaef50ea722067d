// Reads any bytes as the index of a bundle, over a data file of 64 bytes, and reads everything that
// is listed. The input is used twice: as the whole file, and as the contents of its one data block,
// so that checksums, which no mutation gets right, do not hide the code after their check.
#include <cstdint>
#include <cstdlib>

#include "muster/base/crc32c.h"
#include "muster/formats/bundle.h"
#include "muster/formats/table_coding.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

constexpr uint64_t kDataBytes = 64;

void AddBlock(std::string* file, std::string block) {
  block.push_back('\0');
  file->append(block);
  AppendFixed32(file, MaskedCrc32c(block));
}

// Makes a table with one data block of these contents.
std::string Wrap(std::string_view contents) {
  std::string file;
  AddBlock(&file, std::string(contents));
  std::string handle;
  AppendVarint(&handle, 0);
  AppendVarint(&handle, contents.size());
  std::string index;
  AppendVarint(&index, 0);
  AppendVarint(&index, 1);
  AppendVarint(&index, handle.size());
  index += "z" + handle;
  AppendFixed32(&index, 0);
  AppendFixed32(&index, 1);
  std::string footer;
  AppendVarint(&footer, 0);
  AppendVarint(&footer, 0);
  AppendVarint(&footer, file.size());
  AppendVarint(&footer, index.size());
  footer.resize(40, '\0');
  AddBlock(&file, index);
  file += footer;
  AppendFixed64(&file, 0xdb4775248b80fb57);
  return file;
}

void ReadEverything(io::FileSystem& files, std::string_view index) {
  if (!io::WriteFileAtomically(files, "b.index", index).ok()) abort();
  const auto reader = BundleReader::Open(files, "b");
  if (!reader.ok()) return;
  for (const auto& [name, info] : (*reader)->tensors()) {
    if (info.type == DataType::kString) {
      (*reader)->ReadStrings(name).IgnoreError();
    } else {
      if (info.bytes > kDataBytes) abort();
      std::string bytes(info.bytes, '\0');
      (*reader)->Read(name, bytes).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto files = muster::io::NewMemoryFileSystem();
  const std::string bytes(muster::formats::kDataBytes, '\1');
  if (!muster::io::WriteFileAtomically(*files, "b.data-00000-of-00001", bytes).ok()) abort();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  muster::formats::ReadEverything(*files, input);
  muster::formats::ReadEverything(*files, muster::formats::Wrap(input));
  return 0;
}
