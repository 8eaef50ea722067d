// checkpoint_cost MODEL.yaml DATA FOLDER ROUNDS: trains, and saves meanwhile; prints a JSON line a
// round. Every batch of the data is trained on with ids drawn anew, uniformly, so that each step
// touches other rows of the tables: the dearest case for a save that shares their memory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/random.h"
#include "muster/checkpoint/async_saver.h"
#include "muster/io/local_file_system.h"
#include "muster/model/model.h"
#include "muster/train/input/input.h"
#include "muster/train/weights/update.h"
#include "muster/train/weights/variables.h"

namespace muster {
namespace {

constexpr int kBatch = 512;
constexpr int kBatches = 16;
constexpr int kStepsBefore = 100;
constexpr int kRest = 1'000'000;  // microseconds
constexpr size_t kBlock = size_t{4} << 20;

double Now() { return static_cast<double>(SystemClock().MonotonicNanos()) * 1e-9; }

class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Create(io::FileSystem& files,
                                                          const std::string& spec_path,
                                                          const std::string& data) {
    auto training = std::make_unique<Training>();
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(files, spec_path));
    MUSTER_ASSIGN_OR_RETURN(training->model_, model::BuildModel(spec, {}));
    MUSTER_ASSIGN_OR_RETURN(training->variables_,
                            train::Variables::Create(training->model_, 1, /*with_slots=*/true));
    training->sink_ = std::make_unique<train::UpdateSink>(training->model_, *training->variables_);
    train::InputSpec input_spec;
    input_spec.source.patterns = {data};
    input_spec.reader.batch_size = kBatch;
    MUSTER_ASSIGN_OR_RETURN(const auto input,
                            train::Input::Open(files, training->model_, input_spec));
    while (training->batches_.size() < kBatches) {
      MUSTER_ASSIGN_OR_RETURN(const train::InputBatch* const batch, input->Next());
      if (batch == nullptr) return absl::InvalidArgumentError("too few rows");
      training->batches_.push_back(batch->features);
    }
    for (const engine::VariableSpec& variable : training->variables_->specs()) {
      training->rows_ = std::max(training->rows_, variable.shape.front());
    }
    return training;
  }

  void set_frozen(checkpoint::FrozenTensors* frozen) { variables_->set_frozen(frozen); }
  std::vector<checkpoint::Tensor> Tensors() const { return variables_->Tensors(true); }
  int64_t step() const { return step_; }

  // The seconds of one step; drawing its ids is not counted.
  absl::StatusOr<double> Step() {
    features::FeatureBatch& batch = batches_[step_ % kBatches];
    for (features::IdList& list : batch.id_lists) {
      for (int32_t& id : list.ids) id = static_cast<int32_t>(random_.Below(rows_));
    }
    const double start = Now();
    sink_->set_step(step_);
    MUSTER_RETURN_IF_ERROR(
        model_.engine->Step(variables_->views(), batch, {.seed = 1, .step = step_}, *sink_)
            .status());
    ++step_;
    return Now() - start;
  }

 private:
  model::Model model_;
  std::unique_ptr<train::Variables> variables_;
  std::unique_ptr<train::UpdateSink> sink_;
  std::vector<features::FeatureBatch> batches_;
  RandomStream random_{1, RandomPurpose::kSampleData, 0};
  int64_t rows_ = 0;  // of a table
  int64_t step_ = 0;
};

// The disk's own time: the same bytes from the same memory, and fsync; through the page cache, or
// past it in aligned blocks (the last one rounded up).
absl::StatusOr<double> PlainWrite(const std::vector<checkpoint::Tensor>& tensors,
                                  const std::string& path, bool direct) {
  const std::unique_ptr<char, decltype(&std::free)> block(
      static_cast<char*>(std::aligned_alloc(4096, kBlock)), &std::free);
  const double start = Now();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0), 0666);
  if (fd < 0) return ErrnoStatus(errno, path);
  size_t filled = 0;
  for (const checkpoint::Tensor& tensor : tensors) {
    for (std::span<const char> rest = tensor.bytes; !rest.empty();) {
      const size_t size = std::min(rest.size(), kBlock - filled);
      std::memcpy(block.get() + filled, rest.data(), size);
      filled += size;
      rest = rest.subspan(size);
      const bool last = rest.empty() && &tensor == &tensors.back();
      if (filled < kBlock && !last) continue;
      if (direct) filled = (filled + 4095) / 4096 * 4096;
      if (write(fd, block.get(), filled) != static_cast<ssize_t>(filled)) {
        return ErrnoStatus(errno, path);
      }
      filled = 0;
    }
  }
  if (fsync(fd) != 0 || close(fd) != 0) return ErrnoStatus(errno, path);
  const double seconds = Now() - start;
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, path);
  usleep(kRest);
  return seconds;
}

struct WhileTraining {
  double usual = 0;    // median step before the save
  double blocked = 0;  // the call that starts the save
  double longest = 0;  // the longest step while it is written
  double wall = 0;     // until it is on disk
  int64_t steps = 0;   // trained meanwhile
};

absl::StatusOr<WhileTraining> SaveWhileTraining(Training& training, checkpoint::AsyncSaver& saver) {
  WhileTraining seen;
  std::vector<double> before;
  for (int i = 0; i < kStepsBefore; ++i) {
    MUSTER_ASSIGN_OR_RETURN(before.emplace_back(), training.Step());
  }
  std::nth_element(before.begin(), before.begin() + kStepsBefore / 2, before.end());
  seen.usual = before[kStepsBefore / 2];
  const double start = Now();
  MUSTER_RETURN_IF_ERROR(saver.Start(training.step(), training.Tensors(), {}));
  seen.blocked = Now() - start;
  for (; saver.busy(); ++seen.steps) {
    MUSTER_ASSIGN_OR_RETURN(const double seconds, training.Step());
    seen.longest = std::max(seen.longest, seconds);
  }
  MUSTER_RETURN_IF_ERROR(saver.Wait());
  seen.wall = Now() - start;
  usleep(kRest);
  return seen;
}

// With nothing else to do: comparable with the plain write.
absl::StatusOr<double> SaveAlone(Training& training, checkpoint::AsyncSaver& saver) {
  MUSTER_RETURN_IF_ERROR(training.Step().status());  // each save has a name of its own
  const double start = Now();
  MUSTER_RETURN_IF_ERROR(saver.Start(training.step(), training.Tensors(), {}));
  MUSTER_RETURN_IF_ERROR(saver.Wait());
  const double seconds = Now() - start;
  usleep(kRest);
  return seconds;
}

absl::Status Run(const std::string& spec, const std::string& data, const std::string& folder,
                 int rounds) {
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const auto training, Training::Create(*files, spec, data));
  checkpoint::AsyncSaver saver(*files, clock, folder, {.keep_max = 2});
  saver.frozen().Prepare(training->Tensors());
  training->set_frozen(&saver.frozen());
  uint64_t bytes = 0;
  for (const checkpoint::Tensor& tensor : training->Tensors()) bytes += tensor.bytes.size();
  const std::string plain_path = io::JoinPath(folder, "plain");
  MUSTER_RETURN_IF_ERROR(files->MakeFolders(folder));
  for (int round = 0; round < rounds; ++round) {
    double plain = 0, direct = 0, alone = 0;
    for (int k = 0; k < 3; ++k) {  // in turn first
      const int side = (round + k) % 3;
      if (side == 0) {
        MUSTER_ASSIGN_OR_RETURN(plain, PlainWrite(training->Tensors(), plain_path, false));
      } else if (side == 1) {
        MUSTER_ASSIGN_OR_RETURN(alone, SaveAlone(*training, saver));
      } else {
        MUSTER_ASSIGN_OR_RETURN(direct, PlainWrite(training->Tensors(), plain_path, true));
      }
    }
    MUSTER_ASSIGN_OR_RETURN(const WhileTraining seen, SaveWhileTraining(*training, saver));
    std::printf(
        "{\"bytes\":%llu,\"plain\":%.4f,\"direct\":%.4f,\"alone\":%.4f,\"usual_step\":%.5f,"
        "\"blocked\":%.5f,"
        "\"longest_step\":%.5f,\"while_training\":%.4f,\"steps\":%lld,\"prefix\":\"%s\"}\n",
        static_cast<unsigned long long>(bytes), plain, direct, alone, seen.usual, seen.blocked,
        seen.longest, seen.wall, static_cast<long long>(seen.steps), saver.prefix().c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: checkpoint_cost MODEL.yaml DATA FOLDER ROUNDS\n");
    return 2;
  }
  const absl::Status status = muster::Run(argv[1], argv[2], argv[3], std::atoi(argv[4]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
