// A SavedModel that TensorFlow has loaded, and its functions, each with tensors to feed and tensors
// to fetch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/host/library.h"
#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/host/shared_segment.h"

namespace muster::engine::tensorflow::host {

// A tensor of the graph, "operation:k", and its type.
struct FeedName {
  std::string_view tensor;
  uint64_t type = 0;
};

// One owner thread. TensorFlow's own errors keep their code and text.
class SavedModel {
 public:
  // `config` is a serialized ConfigProto. The library and the segment must outlive the model.
  static absl::StatusOr<std::unique_ptr<SavedModel>> Load(const Library& library,
                                                          const SharedSegment& segment,
                                                          const std::string& folder,
                                                          std::string_view config);
  ~SavedModel();
  SavedModel(const SavedModel&) = delete;
  SavedModel& operator=(const SavedModel&) = delete;

  // Returns the number of the function. NOT_FOUND for a tensor that is not in the graph,
  // INVALID_ARGUMENT for one of another type.
  absl::StatusOr<uint64_t> Define(const std::vector<FeedName>& feeds,
                                  const std::vector<std::string_view>& fetches);
  // Reads the feeds in place. The fetched tensors are kept until the next Run. INVALID_ARGUMENT for
  // places outside the memory or with lengths that do not fit their shapes.
  absl::Status Run(uint64_t function, FieldReader feeds);

  // Writes the last Run's fetched tensors at offset `reply` if they fit in `room`. Returns their
  // number of bytes.
  uint64_t WriteResult(uint64_t reply, uint64_t room) const;

 private:
  struct Feed {
    TensorPlace place;  // from which `tensor` was made
    std::string name;
    TF_Tensor* tensor = nullptr;
  };
  struct Function {
    std::vector<TfOutput> feeds, fetches;
    std::vector<Feed> tensors;
  };

  SavedModel(const Library& library, const SharedSegment& segment, std::string folder)
      : call_(library.call), segment_(segment), folder_(std::move(folder)) {}
  absl::StatusOr<TfOutput> Find(std::string_view tensor) const;
  absl::Status SetFeed(const TensorPlace& place, Feed* feed) const;
  absl::StatusOr<TF_Tensor*> NewStrings(const TensorPlace& place, uint64_t elements) const;
  void DeleteTensor(TF_Tensor* tensor) const;
  void DeleteResults();
  std::vector<TensorPlace> Places(uint64_t reply, uint64_t* end) const;
  uint64_t DataBytes(const TF_Tensor* tensor) const;

  const Functions& call_;
  const SharedSegment& segment_;
  const std::string folder_;
  TF_Graph* graph_ = nullptr;
  TF_Session* session_ = nullptr;
  std::vector<Function> functions_;
  std::vector<const TF_Tensor*> inputs_;
  std::vector<TF_Tensor*> results_;
};

}  // namespace muster::engine::tensorflow::host
