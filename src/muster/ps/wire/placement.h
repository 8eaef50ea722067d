// Placement: which server has which part of each variable. Every task computes the same placement,
// from the variables and the number of servers alone.
//
// Row r of a table is on server r % servers, as its row r / servers. Vocabularies are sorted by
// frequency, so that neighbouring rows on different servers share the load; ranges of rows would
// give the first server nearly all of it. Hashed ids are spread in either case. A dense variable of
// fewer than kSplitFloats is whole on the server that has the fewest floats so far; a larger one is
// cut into ranges of elements, at multiples of kBlockFloats. A key of a table that grows is on the
// server that its hash selects.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/ps/wire/variable.h"

namespace muster::ps {

constexpr int64_t kSplitFloats = int64_t{16} << 10;
// Adagrad rounds by blocks of this many floats (math/update_kernels.inc): a cut between two blocks
// changes no bit.
constexpr int64_t kBlockFloats = 512;

// The part of one variable on one server.
struct Part {
  int64_t first = 0;  // kDense, kState: the first element; unused for a table
  int64_t rows = 0;   // of a kTable; else 1, or 0 if the server has nothing of the variable
  int64_t cols = 0;   // of a kTable; else the number of elements
  int64_t elements() const { return rows * cols; }
};

class Placement {
 public:
  Placement(std::span<const Variable> variables, int servers);

  int servers() const { return servers_; }
  const Part& part(int variable, int server) const {
    return parts_[static_cast<size_t>(variable)][static_cast<size_t>(server)];
  }
  int GetServer(int32_t row) const { return static_cast<int>(row % servers_); }
  // The server of a key of any table that grows.
  int GetServerOfKey(int64_t key) const;
  int32_t LocalRow(int32_t row) const { return row / servers_; }
  // The number of floats on a server, of all dense variables and statistics together. A pull
  // returns them in this order.
  int64_t dense_floats(int server) const { return dense_floats_[static_cast<size_t>(server)]; }

  // Copy between a whole variable (rows x cols floats at `whole`) and the elements [first, first +
  // part.size()) of a server's part of it: Cut fills `part`, Paste fills `whole`.
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
