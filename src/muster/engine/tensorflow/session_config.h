// TensorFlow's settings for running a graph.
#pragma once

#include <string>

namespace muster::engine::tensorflow {

enum class Executor {
  kSingleThreaded,  // the cheapest one, for graphs without variables
  kDefault,         // operations run concurrently, even with one thread for each
};

// Returns a serialized TensorFlow ConfigProto. `threads` is the number for one operation. Memory of
// a GPU is taken as it is needed, not all at once as TensorFlow does by itself: workers and an
// evaluator may share the GPU.
std::string SessionConfig(int threads, Executor executor);

}  // namespace muster::engine::tensorflow
