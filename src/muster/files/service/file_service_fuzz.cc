// Any bytes as requests to a service of files in memory, one after the other: each is answered, and
// what is read is no more than was asked for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "muster/files/service/file_service.h"
#include "muster/io/memory_file_system.h"

namespace {

constexpr uint64_t kMostRead = 4096;

std::string Take(std::string_view* rest, size_t size) {
  const std::string taken(rest->substr(0, size));
  rest->remove_prefix(taken.size());
  return taken;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using muster::files::FileRequestHead;
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  const auto files = muster::io::NewMemoryFileSystem();
  muster::files::FileService service(*files);
  uint64_t opened = 0;
  while (rest.size() >= sizeof(FileRequestHead)) {
    FileRequestHead head;
    std::memcpy(&head, rest.data(), sizeof(head));
    rest.remove_prefix(sizeof(head));
    const std::string path = Take(&rest, head.path_size);
    const std::string data = Take(&rest, head.data_size);
    head.size = std::min(head.size, kMostRead);
    if (head.file == 0) head.file = opened;  // numbers start anywhere
    const auto answer = service.Do(head, path, data);
    if (answer.head.number != 0) opened = answer.head.number;
    const bool is_read =
        static_cast<muster::files::FileOp>(head.op) == muster::files::FileOp::kRead;
    if (answer.head.code == 0 && is_read && answer.data.size() > head.size) std::abort();
  }
  return 0;
}
