// The host process: serves its owner's requests, one at a time, until the owner is gone.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/host/saved_model.h"
#include "muster/engine/tensorflow/host/shared_segment.h"
#include "muster/process/descriptor.h"

namespace muster::engine::tensorflow::host {

// One owner thread.
class Server {
 public:
  // `requests`, `answers`: eventfds; `requests` is a blocking one.
  Server(process::Descriptor requests, process::Descriptor answers,
         std::unique_ptr<SharedSegment> segment);
  ~Server();

  // Returns when the owner asks for the end. DATA_LOSS for invalid requests, which mean that the
  // two programs do not match.
  absl::Status Serve();

 private:
  absl::StatusOr<bool> Receive(Request* request);
  void Handle(const Request& request, Answer* answer);
  absl::Status Do(const Request& request, FieldReader body, FieldWriter* reply, bool* ran);
  absl::Status Open(FieldReader body, FieldWriter* reply);
  absl::Status Load(FieldReader body);
  absl::Status Define(FieldReader body, FieldWriter* reply);
  absl::Status Run(FieldReader body);

  const process::Descriptor requests_, answers_;
  const std::unique_ptr<SharedSegment> segment_;
  Library library_;
  bool opened_ = false;
  std::unique_ptr<SavedModel> model_;
  uint64_t last_sequence_ = 0;
};

}  // namespace muster::engine::tensorflow::host
