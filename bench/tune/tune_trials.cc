// tune_trials noop FOLDER TRIALS THREADS: trials that do nothing, by the random sampler, each of
// them durable. Prints {"seconds": ...}.
//
// tune_trials tpe FUNCTION SEED TRIALS: TPE minimises a test function, in memory. Prints
// {"best": ...}. bench/peers/optuna_trials.py has the same functions.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <string>

#include "absl/strings/numbers.h"

#include "muster/io/local_file_system.h"
#include "muster/tune/runner.h"

namespace muster::tune {
namespace {

class NoOp : public Objective {
 public:
  absl::StatusOr<Outcome> Run(const Trial& trial, const AddReport&) override {
    return Outcome{.has_value = true, .last = {.resource = 1, .value = trial.point[0]}};
  }
};

absl::Status RunNoOps(const std::string& folder, int64_t trials, int threads) {
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  MUSTER_RETURN_IF_ERROR(files->MakeFolders(folder));
  StudySpec spec = {.space = {{{.name = "x", .low = 0, .high = 1},
                               {.name = "y", .low = 0.001, .high = 1, .log = true}}},
                    .goal = {.metric = "loss"},
                    .sampler = {.kind = SamplerSpec::Kind::kRandom},
                    .budget = {.trials = trials}};
  const int64_t start = clock.MonotonicNanos();
  MUSTER_ASSIGN_OR_RETURN(
      const auto journal,
      StudyJournal::Open(*files, clock, io::JoinPath(folder, "study.log"), {{"seed", 1}}, spec));
  NoOp objective;
  const std::atomic<bool> stop = false;
  MUSTER_RETURN_IF_ERROR(
      RunTrials(*journal, objective, threads, stop, [](const Trial&, const Outcome&) {}));
  const double seconds = static_cast<double>(clock.MonotonicNanos() - start) * 1e-9;
  std::printf("{\"seconds\": %.6f, \"trials\": %lld}\n", seconds,
              static_cast<long long>(journal->GetProgress().complete));
  return absl::OkStatus();
}

struct Function {
  const char* name;
  Space space;
  double (*value)(const Point& point);
};

Space Cube(int dimensions, double low, double high) {
  Space space;
  for (int i = 0; i < dimensions; ++i) {
    space.parameters.push_back({.name = StrCat("x", i), .low = low, .high = high});
  }
  return space;
}

double Sphere(const Point& x) {
  double sum = 0;
  for (const double one : x) sum += (one - 1) * (one - 1);
  return sum;
}

double Rosenbrock(const Point& x) {
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  }
  return sum;
}

double Branin(const Point& x) {
  constexpr double kPi = std::numbers::pi;
  const double a = 15 * x[0] - 5, b = 15 * x[1];
  return std::pow(b - 5.1 / (4 * kPi * kPi) * a * a + 5 / kPi * a - 6, 2) +
         10 * (1 - 1 / (8 * kPi)) * std::cos(a) + 10;
}

double Rastrigin(const Point& x) {
  double sum = 10 * static_cast<double>(x.size());
  for (const double one : x) sum += one * one - 10 * std::cos(2 * std::numbers::pi * one);
  return sum;
}

double Ackley(const Point& x) {
  double squares = 0, cosines = 0;
  for (const double one : x) {
    squares += one * one;
    cosines += std::cos(2 * std::numbers::pi * one);
  }
  const auto n = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 +
         std::numbers::e;
}

// As a training's settings are: a rate, layers, and a choice.
double Mixed(const Point& x) {
  const double rate = std::log10(x[0]) + 2;
  const double layers = (x[1] - 3) / 2;
  return rate * rate + layers * layers + 0.3 * x[2] + (x[2] == 1 ? -0.5 : 0);
}

std::vector<Function> Functions() {
  const Space mixed = {{{.name = "rate", .low = 1e-5, .high = 1, .log = true},
                        {.name = "layers", .kind = Parameter::Kind::kInt, .low = 1, .high = 8},
                        {.name = "kind", .kind = Parameter::Kind::kChoice, .choices = {0, 1, 2}}}};
  return {{"sphere", Cube(5, -5, 5), Sphere},   {"rosenbrock", Cube(3, -2, 2), Rosenbrock},
          {"branin", Cube(2, 0, 1), Branin},    {"rastrigin", Cube(4, -5.12, 5.12), Rastrigin},
          {"ackley", Cube(4, -10, 10), Ackley}, {"mixed", mixed, Mixed}};
}

absl::Status RunTpe(const std::string& name, uint64_t seed, int64_t trials) {
  for (const Function& function : Functions()) {
    if (name != function.name) continue;
    const Goal goal = {.metric = "loss"};
    const auto sampler = NewTpe({}, function.space, goal, seed);
    History history;
    double best = HUGE_VAL;
    for (int64_t number = 0; number < trials; ++number) {
      const Point point = *sampler->Next(history, number);
      const double value = function.value(point);
      history.push_back(
          {.number = number, .point = point, .state = TrialState::kComplete, .value = value});
      best = std::min(best, value);
    }
    std::printf("{\"best\": %.17g}\n", best);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("no function '", name, "'"));
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() != 4) return absl::InvalidArgumentError("see the head of this file");
  int64_t second = 0, third = 0;
  if (!absl::SimpleAtoi(words[2], &second) || !absl::SimpleAtoi(words[3], &third)) {
    return absl::InvalidArgumentError("the last two arguments are numbers");
  }
  if (words[0] == "noop") return RunNoOps(words[1], second, static_cast<int>(third));
  return RunTpe(words[1], static_cast<uint64_t>(second), third);
}

}  // namespace
}  // namespace muster::tune

int main(int argc, char** argv) {
  const absl::Status status = muster::tune::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "tune_trials: %s\n", std::string(status.message()).c_str());
  return 1;
}
