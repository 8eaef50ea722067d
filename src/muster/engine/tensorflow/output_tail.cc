#include "muster/engine/tensorflow/output_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace muster::engine::tensorflow {
namespace {

constexpr size_t kTailLines = 20;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputTail>> OutputTail::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return ErrnoStatus(error, "make a pipe for the output of a TensorFlow host");
  }
  return std::unique_ptr<OutputTail>(
      new OutputTail(process::Descriptor(ends[0]), process::Descriptor(ends[1])));
}

OutputTail::OutputTail(process::Descriptor reader, process::Descriptor writer)
    : reader_(std::move(reader)),
      writer_(std::move(writer)),
      tail_(kTailLines),
      thread_([this] { Pump(); }) {}

OutputTail::~OutputTail() { Finish(); }

void OutputTail::Pump() {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(reader_.get(), buffer, sizeof buffer);
    if (got > 0) tail_.Append({buffer, static_cast<size_t>(got)});
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

std::vector<std::string> OutputTail::Finish() {
  writer_.Reset();
  if (thread_.joinable()) thread_.join();
  return tail_.Lines();
}

}  // namespace muster::engine::tensorflow
