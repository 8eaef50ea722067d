// ReplicaRates: how fast each replica of a synchronous training works, and who holds the others up.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace muster::train {

// One replica's last step.
struct ReplicaWork {
  int rows = 0;
  float seconds = 0;  // that it worked: read, computed, saved; not those it waited for the others
};

// Means over about the last hundred steps. One owner thread.
class ReplicaRates {
 public:
  // A new set of replicas, by rank.
  void Begin(std::vector<std::string> tasks);
  // After each step, by rank.
  void Add(std::span<const ReplicaWork> work);

  struct Rate {
    std::string task;                // "worker-1"
    double examples_per_second = 0;  // that it would do if it never waited
  };
  std::vector<Rate> rates() const;

  struct Straggler {
    std::string task;
    double times = 1;  // how many times as long as the others' median it works
  };
  // The slowest replica, when the others wait for it a good part of the time; else task is "".
  Straggler straggler() const;

 private:
  struct Mean {
    std::string task;
    double rows = 0;
    double seconds = 0;
  };
  std::vector<Mean> means_;
  int steps_ = 0;
};

}  // namespace muster::train
