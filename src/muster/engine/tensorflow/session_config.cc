// Field numbers are those of tensorflow/core/protobuf/config.proto.
#include "muster/engine/tensorflow/session_config.h"

#include <cstdint>
#include <string_view>

namespace muster::engine::tensorflow {
namespace {

void AppendVarint(std::string* to, uint64_t value) {
  while (value >= 0x80) {
    to->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  to->push_back(static_cast<char>(value));
}

void AppendNumber(std::string* to, uint64_t field, uint64_t value) {
  AppendVarint(to, field << 3);
  AppendVarint(to, value);
}

void AppendBytes(std::string* to, uint64_t field, std::string_view bytes) {
  AppendVarint(to, field << 3 | 2);
  AppendVarint(to, bytes.size());
  to->append(bytes);
}

}  // namespace

std::string SessionConfig(int threads, Executor executor) {
  std::string gpu_options;
  AppendNumber(&gpu_options, 4, 1);  // allow_growth
  std::string config;
  AppendBytes(&config, 6, gpu_options);
  const bool single = executor == Executor::kSingleThreaded;
  AppendNumber(&config, 2, static_cast<uint64_t>(threads));  // intra_op_parallelism_threads
  AppendNumber(&config, 5, single ? 1 : static_cast<uint64_t>(threads));  // inter_op_...
  AppendNumber(&config, 9, 1);                                            // use_per_session_threads
  if (single) {
    std::string experimental;
    AppendBytes(&experimental, 3, "SINGLE_THREADED_EXECUTOR");  // executor_type
    AppendBytes(&config, 16, experimental);
  }
  return config;
}

}  // namespace muster::engine::tensorflow
