// What a program says, from its pipe, on a thread of its own: its last lines.
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
  // Once the program has ended.
  ~OutputTail();
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;

  // The program's stdout and stderr; -1 after CloseWriter.
  int writer_fd() const { return writer_.get(); }
  // Once the program has been started: its end is then the pipe's.
  void CloseWriter() { writer_.Reset(); }
  // After its end: all that it said last, oldest first.
  std::vector<std::string> Finish();

 private:
  OutputTail(process::Descriptor reader, process::Descriptor writer);
  void Pump();

  process::Descriptor reader_, writer_;
  process::LineTail tail_;  // the thread's, until it is joined
  std::thread thread_;
};

}  // namespace muster::engine::tensorflow
