// TensorFlow's settings for running a graph.
#pragma once

#include <string>

namespace muster::engine::tensorflow {

enum class Executor {
  kSingleThreaded,  // the cheapest in TensorFlow, for graphs without variables
  kDefault,         // operations run concurrently, even with one thread each
};

// A TensorFlow ConfigProto, serialized. `threads`: for one operation.
std::string SessionConfig(int threads, Executor executor);

}  // namespace muster::engine::tensorflow
