#include "muster/engine/updater.h"

namespace muster::engine {

uint64_t UpdaterSlot::bytes() const {
  return static_cast<uint64_t>(formats::ElementCount(shape).value_or(0)) *
         formats::DataTypeBytes(type);
}

}  // namespace muster::engine
