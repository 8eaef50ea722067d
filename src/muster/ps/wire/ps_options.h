// PsOptions: the settings of a training by parameter servers that are the same in all its tasks.
#pragma once

#include <cstdint>

namespace muster::ps {

struct PsOptions {
  int replicas = 1;
  bool synchronous = false;
  // Synchronous: how many replicas' gradients make a step; the others are backups. 0: all.
  int aggregate = 0;
  // Asynchronous: no replica begins a batch more than this many ahead of the slowest replica whose
  // data has not ended and which was heard from within the lease; < 0: no bound.
  int64_t staleness = -1;

  // Whether fewer gradients make a step than there are replicas.
  bool has_backups() const { return synchronous && aggregate > 0 && aggregate < replicas; }
};

}  // namespace muster::ps
