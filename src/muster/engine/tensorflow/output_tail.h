// Reads a program's output from its pipe, on a thread of its own, and keeps the last lines.
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
  // Only after the program has ended.
  ~OutputTail();
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;

  // The program's stdout and stderr; -1 after CloseWriter.
  int writer_fd() const { return writer_.get(); }
  // Called after the program has been started, so that the pipe ends with the program.
  void CloseWriter() { writer_.Reset(); }
  // Called after the program has ended: its last lines, oldest first.
  std::vector<std::string> Finish();

 private:
  OutputTail(process::Descriptor reader, process::Descriptor writer);
  void Pump();

  process::Descriptor reader_, writer_;
  process::LineTail tail_;  // used by the thread until it is joined
  std::thread thread_;
};

}  // namespace muster::engine::tensorflow
