// Parses any bytes as a checkpoint state file and as the record of the best checkpoint: either they
// are refused, or writing and reading the result again gives an equal one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "muster/checkpoint/best.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/checkpoint_state.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "checkpoint_state_fuzz: not true: %s\n", what);
  std::abort();
}

void CheckBest(std::string_view input) {
  const auto files = io::NewMemoryFileSystem();
  Expect(files->MakeFolders("m").ok(), "folder");
  Expect(io::WriteFileAtomically(*files, "m/best_checkpoint", input).ok(), "input");
  const auto best = ReadBest(*files, "m");
  Expect(FindBest(*files, "m").status().code() ==
             (best.ok() ? absl::StatusCode::kNotFound : absl::StatusCode::kDataLoss),
         "it is not there");
  if (!best.ok() || !*best) return;
  Expect(WriteBest(*files, "m", **best).ok(), "write the best");
  const auto again = ReadBest(*files, "m");
  Expect(again.ok() && *again && (*again)->name == (*best)->name, "the best is read");
}

void Check(std::string_view input) {
  const auto files = io::NewMemoryFileSystem();
  Expect(files->MakeFolders("m").ok(), "folder");
  Expect(io::WriteFileAtomically(*files, StatePath("m"), input).ok(), "input");
  const auto state = ReadState(*files, "m");
  Expect(absl::IsNotFound(Latest(*files, "m").status()), "there is no checkpoint");
  if (!state.ok()) {
    Expect(absl::IsDataLoss(state.status()), "an error of a file is DATA_LOSS");
    return;
  }
  Expect(state->timestamps.empty() || state->timestamps.size() == state->all.size(), "times");
  Expect(WriteState(*files, "m", *state).ok(), "write");
  const auto again = ReadState(*files, "m");
  Expect(again.ok() && *again == *state, "what is written is read");
}

}  // namespace
}  // namespace muster::checkpoint

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::checkpoint::Check({reinterpret_cast<const char*>(data), size});
  muster::checkpoint::CheckBest({reinterpret_cast<const char*>(data), size});
  return 0;
}
