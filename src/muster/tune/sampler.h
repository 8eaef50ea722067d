// Sampler: chooses the point of the next trial, as a pure function of the seed, the trial's number
// and the history: the same history gives the same point, in any process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/tune/history.h"

namespace muster::tune {

struct SamplerSpec {
  enum class Kind { kRandom, kGrid, kTpe };
  Kind kind = Kind::kTpe;
  // TPE: trials at random before it begins, and candidates of which it takes the best one.
  int startup_trials = 10;
  int candidates = 24;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // The point of trial `number`; nullopt if all points were taken. `history` has the trials before.
  virtual std::optional<Point> Next(const History& history, int64_t number) const = 0;
};

// Why a grid cannot try the values of the parameter; "" if it can.
std::string WhyNoGrid(const Parameter& parameter);

// `space` must outlive the sampler. INVALID_ARGUMENT for a grid of a parameter with infinitely many
// values and no `points`, or of over a million points.
absl::StatusOr<std::unique_ptr<Sampler>> NewSampler(const SamplerSpec& spec, const Space& space,
                                                    const Goal& goal, uint64_t seed);

// The stream from which the parameter of the trial is drawn.
RandomStream DrawsOf(uint64_t seed, int64_t trial, const std::string& parameter);
// Each parameter by itself, by its chances in the space.
Point DrawPoint(const Space& space, uint64_t seed, int64_t trial);

// In tpe.cc. Tree-structured Parzen estimator: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for
// Hyper-Parameter Optimization" (NeurIPS 2011); over all parameters at once, with widths and
// weights as Optuna's TPESampler has them: Watanabe, "Tree-Structured Parzen Estimator" (arXiv
// 2304.11127).
std::unique_ptr<Sampler> NewTpe(const SamplerSpec& spec, const Space& space, const Goal& goal,
                                uint64_t seed);

}  // namespace muster::tune
