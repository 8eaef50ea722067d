// ReplicaRates: how fast each replica of a synchronous training is, and which one is a straggler.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace muster::train {

// One replica's last step.
struct ReplicaWork {
  int rows = 0;
  float seconds = 0;  // of work: reading, computing, saving; without its waits for the others
};

// Means over about the last hundred steps. One owner thread.
class ReplicaRates {
 public:
  // Begins with a new set of replicas, by rank.
  void Begin(std::vector<std::string> tasks);
  // Adds a step: the work of each replica, by rank.
  void Add(std::span<const ReplicaWork> work);

  struct Rate {
    std::string task;                // "worker-1"
    double examples_per_second = 0;  // as if it never had to wait
  };
  std::vector<Rate> rates() const;

  struct Straggler {
    std::string task;
    double times = 1;  // its working time, as a multiple of the others' median
  };
  // The slowest replica, if the others wait for it much of the time; else `task` is "". A
  // replica whose data has ended is not compared, since it has nothing left to do.
  Straggler straggler() const;

 private:
  struct Mean {
    std::string task;
    double rows = 0;
    double seconds = 0;
    bool has_data = true;  // at the last step
  };
  std::vector<Mean> means_;
  int steps_ = 0;
};

}  // namespace muster::train
