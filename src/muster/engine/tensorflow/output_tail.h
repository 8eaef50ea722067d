// Reads a program's output from its pipe, on a separate thread, and keeps the last lines.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/process/descriptor.h"
#include "muster/process/output_log.h"

namespace muster::engine::tensorflow {

// One owner thread.
class OutputTail {
 public:
  static absl::StatusOr<std::unique_ptr<OutputTail>> Open();
  // May only be called after the program has ended.
  ~OutputTail();
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;

  // To be used as the program's stdout and stderr; -1 after CloseWriter.
  int writer_fd() const { return writer_.get(); }
  // Called after the program has been started, so that the pipe ends with the program.
  void CloseWriter() { writer_.Reset(); }
  // Called after the program has ended: returns its last lines, oldest first.
  std::vector<std::string> Finish();

 private:
  OutputTail(process::Descriptor reader, process::Descriptor writer);
  void Pump();

  process::Descriptor reader_, writer_;
  process::LineTail tail_;  // only the thread uses it until the thread is joined
  std::thread thread_;
};

}  // namespace muster::engine::tensorflow
