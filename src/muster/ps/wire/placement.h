// Placement: which server has which part of each variable. Every task computes the same placement,
// from the variables and the number of servers alone.
//
// A table is dealt out in blocks of rows. Vocabularies are sorted by frequency: the first 16 blocks
// of each server have one row, the next 16 have two, the next 16 four, and so on, so that frequent
// rows are shared as evenly as rare ones, and a table of any size has some hundred blocks. (Equal
// ranges of rows would give the first server nearly all of the load.) A dense variable of
// fewer than kSplitFloats is whole on the server that has the fewest floats so far; a larger one is
// cut into ranges of elements, at multiples of kBlockFloats. A key of a table that grows is on the
// server that tables/key_order.h says.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/ps/wire/variable.h"
#include "muster/tables/key_order.h"

namespace muster::ps {

constexpr int64_t kSplitFloats = int64_t{16} << 10;
// Adagrad rounds by blocks of this many floats (math/update_kernels.inc): a cut between two blocks
// changes no bit.
constexpr int64_t kBlockFloats = 512;
// The blocks of rows of one size that a server has.
constexpr int64_t kBlocksOfSize = 16;

// The part of one variable on one server.
struct Part {
  int64_t first = 0;  // kDense, kState: the first element; unused for a table
  int64_t rows = 0;   // of a kTable; else 1, or 0 if the server has nothing of the variable
  int64_t cols = 0;   // of a kTable; else the number of elements
  int64_t elements() const { return rows * cols; }
};

// Where a row is: the server, and the row's number there.
struct RowPlace {
  int server = 0;
  int32_t row = 0;
  friend bool operator==(const RowPlace&, const RowPlace&) = default;
};

// Neighbouring rows of a table that are neighbours on a server too.
struct RowRun {
  int64_t local = 0;  // the first one's number on the server
  int64_t first = 0;  // and in the whole table
  int64_t count = 0;
};

class Placement {
 public:
  Placement(std::span<const Variable> variables, int servers);

  int servers() const { return servers_; }
  const Part& part(int variable, int server) const {
    return parts_[static_cast<size_t>(variable)][static_cast<size_t>(server)];
  }
  RowPlace Locate(int32_t row) const {
    // The rows of blocks of 2^level rows begin at row kBlocksOfSize * servers * (2^level - 1).
    const auto servers = static_cast<uint32_t>(servers_), at = static_cast<uint32_t>(row);
    const uint32_t turn = static_cast<uint32_t>(kBlocksOfSize) * servers;
    const int level = std::bit_width(at / turn + 1) - 1;
    const uint32_t before = (1U << level) - 1;
    const uint32_t from = at - turn * before;
    const uint32_t block = from >> level;
    const uint32_t local = static_cast<uint32_t>(kBlocksOfSize) * before +
                           ((block / servers) << level) + (from & before);
    return {static_cast<int>(block % servers), static_cast<int32_t>(local)};
  }
  // All rows of a server's part of a table, in their order.
  std::vector<RowRun> GetRuns(int variable, int server) const;
  // The server of a key of any table that grows.
  int GetServerOfKey(int64_t key) const { return tables::GetServerOfKey(key, servers_); }
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
  RowRun GetRun(int server, int64_t local) const;
  template <class Copy>
  void ForEachRun(int variable, int server, int64_t first, int64_t count, Copy copy) const;

  const int servers_;
  std::vector<bool> is_table_;
  std::vector<std::vector<Part>> parts_;
  std::vector<int64_t> dense_floats_;
};

}  // namespace muster::ps
