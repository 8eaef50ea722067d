#include "muster/checkpoint/async_saver.h"

#include <utility>
#include <vector>

namespace muster::checkpoint {
namespace {

SaverOptions BeginningAt(SaverOptions options, double seconds) {
  if (options.start_seconds == 0) options.start_seconds = seconds;
  return options;
}

}  // namespace

AsyncSaver::AsyncSaver(io::FileSystem& files, const Clock& clock, std::string folder,
                       SaverOptions options)
    : clock_(clock), saver_(files, std::move(folder), BeginningAt(options, clock.WallSeconds())) {}

absl::Status AsyncSaver::Start(int64_t step, std::span<const Tensor> tensors, Strings strings,
                               RowFiles rows) {
  MUSTER_RETURN_IF_ERROR(Wait());
  frozen_.Freeze(tensors);
  done_ = false;
  writer_ = std::jthread([this, step, seconds = clock_.WallSeconds(),
                          tensors = std::vector<Tensor>(tensors.begin(), tensors.end()),
                          strings = std::move(strings), rows = std::move(rows)] {
    const auto read = [this](std::span<char> piece) {
      frozen_.Read(piece);
      return absl::OkStatus();
    };
    result_ = saver_.Save(step, tensors, strings, seconds, read, rows);
    frozen_.Thaw();
    done_.store(true, std::memory_order_release);
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> AsyncSaver::SaveNow(int64_t step, std::span<const Tensor> tensors,
                                                const Strings& strings, const RowFiles& rows) {
  MUSTER_RETURN_IF_ERROR(Wait());
  MUSTER_ASSIGN_OR_RETURN(prefix_,
                          saver_.Save(step, tensors, strings, clock_.WallSeconds(), nullptr, rows));
  return prefix_;
}

absl::Status AsyncSaver::Wait() {
  if (!writer_.joinable()) return absl::OkStatus();
  writer_.join();
  MUSTER_RETURN_IF_ERROR(result_.status());
  prefix_ = *result_;
  return absl::OkStatus();
}

}  // namespace muster::checkpoint
