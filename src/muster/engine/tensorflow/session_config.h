// How TensorFlow is to run a graph.
#pragma once

#include <string>

namespace muster::engine::tensorflow {

enum class Executor {
  kSingleThreaded,  // TensorFlow's cheapest, for graphs without variables
  kDefault,         // operations at the same time, also with one thread each
};

// A TensorFlow ConfigProto, serialized. `threads`: of one operation.
std::string SessionConfig(int threads, Executor executor);

}  // namespace muster::engine::tensorflow
