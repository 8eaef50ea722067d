// Parses any bytes as each message of the parameter servers' protocol: either they are refused, or
// printing and parsing the message again gives an equal one.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "muster/ps/wire/message.h"

namespace {

template <class M>
void Check(muster::ps::ConstBytes bytes) {
  const auto message = muster::ps::Parse<M>(bytes);
  if (!message.ok()) return;
  muster::ps::Bytes printed;
  Print(*message, &printed);
  // Texts may be padded with any bytes, so that the printed bytes may differ from the input.
  muster::ps::Bytes again;
  const auto parsed = muster::ps::Parse<M>(printed);
  if (!parsed.ok()) std::abort();
  Print(*parsed, &again);
  if (printed != again || printed.size() != bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace ps = muster::ps;
  // A copy, which is aligned and ends where the message ends.
  ps::Bytes bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  Check<ps::Hello>(bytes);
  Check<ps::State>(bytes);
  Check<ps::Finish>(bytes);
  Check<ps::Slice>(bytes);
  Check<ps::KeySlice>(bytes);
  Check<ps::FileText>(bytes);
  Check<ps::SaveTables>(bytes);
  Check<ps::SavedTables>(bytes);
  Check<ps::Ready>(bytes);
  Check<ps::Pull>(bytes);
  Check<ps::Pulled>(bytes);
  Check<ps::Push>(bytes);
  Check<ps::Pushed>(bytes);
  Check<ps::Hold>(bytes);
  Check<ps::Held>(bytes);
  Check<ps::Measure>(bytes);
  Check<ps::Measured>(bytes);
  Check<ps::Settle>(bytes);
  Check<ps::Break>(bytes);
  Check<ps::Beat>(bytes);
  Check<ps::Refused>(bytes);
  return 0;
}
