// Placement: which server has what of each variable. Every task works it out for itself, from the
// variables and the number of servers alone.
//
// Row r of a table lies on server r % servers, there as row r / servers. Vocabularies are sorted by
// frequency and hashed ids are spread anyway: neighbours on different servers share the load, where
// ranges of rows would give the first server nearly all of it. A dense variable of fewer than
// kSplitFloats lies whole on the server that has the fewest floats so far; a larger one is cut in
// ranges of elements, in multiples of kBlockFloats. A key of a table that grows lies on the server
// that its hash says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/ps/variable.h"

namespace muster::ps {

constexpr int64_t kSplitFloats = int64_t{16} << 10;
// Adagrad rounds by blocks of so many floats (math/update_kernels.inc): a cut between two changes
// no bit.
constexpr int64_t kBlockFloats = 512;

// Of one variable on one server.
struct Part {
  int64_t first = 0;  // kDense, kState: the first element; a table's rows are by Placement
  int64_t rows = 0;   // kTable; else 1, or 0 for nothing
  int64_t cols = 0;   // kTable; else elements
  int64_t elements() const { return rows * cols; }
};

class Placement {
 public:
  Placement(std::span<const Variable> variables, int servers);

  int servers() const { return servers_; }
  const Part& part(int variable, int server) const {
    return parts_[static_cast<size_t>(variable)][static_cast<size_t>(server)];
  }
  int ServerOf(int32_t row) const { return static_cast<int>(row % servers_); }
  // Of a table that grows, by the key alone.
  int ServerOfKey(int64_t key) const;
  int32_t LocalRow(int32_t row) const { return row / servers_; }
  // Of all dense variables and statistics, one after the other: what a pull brings.
  int64_t dense_floats(int server) const { return dense_floats_[static_cast<size_t>(server)]; }

  // Between the whole of a variable (rows x cols floats of it at `whole`) and the elements [first,
  // first + part.size()) of a server's part.
  void Cut(int variable, int server, const float* whole, int64_t first,
           std::span<float> part) const;
  void Paste(int variable, int server, std::span<const float> part, int64_t first,
             float* whole) const;

 private:
  template <class Copy>
  void ForEachRun(int variable, int server, int64_t first, int64_t count, Copy copy) const;

  const int servers_;
  std::vector<bool> is_table_;
  std::vector<std::vector<Part>> parts_;
  std::vector<int64_t> dense_floats_;
};

}  // namespace muster::ps
