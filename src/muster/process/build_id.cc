#include "muster/process/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"

#include "muster/base/strings.h"

namespace muster::process {
namespace {

constexpr std::string_view kOwner("GNU", sizeof "GNU");  // with its null

// Returns the build id in a segment of notes, which the linker aligned to so many bytes.
std::string FindBuildId(std::string_view notes, size_t alignment) {
  const auto round_up = [&](size_t size) { return (size + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const size_t id_begin = round_up(sizeof note + note.n_namesz);
    const size_t end = round_up(id_begin + note.n_descsz);
    if (id_begin + note.n_descsz > notes.size()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof note, note.n_namesz) == kOwner) {
      return absl::BytesToHexString(ToAbsl(notes.substr(id_begin, note.n_descsz)));
    }
    notes.remove_prefix(std::min(end, notes.size()));
  }
  return "";
}

// The first object is the program itself.
int VisitProgram(dl_phdr_info* object, size_t /*size*/, void* id) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in this process
    const auto* const bytes = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    std::string found =
        FindBuildId({bytes, segment.p_memsz}, segment.p_align == 8 ? 8 : sizeof(uint32_t));
    if (found.empty()) continue;
    *static_cast<std::string*>(id) = std::move(found);
    break;
  }
  return 1;  // no further object
}

}  // namespace

std::string GetBuildId() {
  std::string id;
  dl_iterate_phdr(VisitProgram, &id);
  return id;
}

}  // namespace muster::process
