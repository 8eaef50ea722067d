#include "muster/ps/wire/placement.h"

#include <algorithm>

namespace muster::ps {
namespace {

// Cuts a large dense variable into ranges, one for each server.
std::vector<Part> Ranges(int64_t elements, int servers) {
  const int64_t blocks = (elements + kBlockFloats - 1) / kBlockFloats;
  std::vector<Part> parts;
  int64_t first = 0;
  for (int server = 0; server < servers; ++server) {
    const int64_t end = std::min(elements, blocks * (server + 1) / servers * kBlockFloats);
    parts.push_back({.first = first, .rows = end > first, .cols = end - first});
    first = end;
  }
  return parts;
}

std::vector<Part> Rows(const Variable& table, int servers) {
  const int64_t turn = kBlocksOfSize * servers;
  const int level = std::bit_width(static_cast<uint64_t>(table.rows / turn + 1)) - 1;
  const int64_t before = (int64_t{1} << level) - 1;  // of blocks of fewer rows
  const int64_t rest = table.rows - turn * before;
  const int64_t blocks = rest >> level;
  std::vector<Part> parts;
  for (int64_t server = 0; server < servers; ++server) {
    const int64_t whole = blocks / servers + (server < blocks % servers ? 1 : 0);
    const int64_t last = server == blocks % servers ? rest & before : 0;
    parts.push_back(
        {.first = 0, .rows = kBlocksOfSize * before + (whole << level) + last, .cols = table.cols});
  }
  return parts;
}

}  // namespace

Placement::Placement(std::span<const Variable> variables, int servers)
    : servers_(servers), dense_floats_(static_cast<size_t>(servers)) {
  const auto n = static_cast<size_t>(servers);
  for (const Variable& variable : variables) {
    is_table_.push_back(variable.is_table());
    std::vector<Part> parts(n);
    if (variable.is_table()) {
      parts_.push_back(Rows(variable, servers));
      continue;
    }
    if (variable.elements() >= kSplitFloats) {
      parts = Ranges(variable.elements(), servers);
    } else {
      const auto least = std::min_element(dense_floats_.begin(), dense_floats_.end());
      parts[static_cast<size_t>(least - dense_floats_.begin())] = {
          .first = 0, .rows = 1, .cols = variable.elements()};
    }
    for (size_t server = 0; server < n; ++server) dense_floats_[server] += parts[server].elements();
    parts_.push_back(std::move(parts));
  }
}

// The run that begins at a server's row `local`; it may reach beyond the end of the table.
RowRun Placement::GetRun(int server, int64_t local) const {
  const int level = std::bit_width(static_cast<uint64_t>(local / kBlocksOfSize + 1)) - 1;
  const int64_t before = (int64_t{1} << level) - 1;
  const int64_t from = local - kBlocksOfSize * before;
  const int64_t block = (from >> level) * servers_ + server;
  return {.local = local,
          .first = kBlocksOfSize * servers_ * before + (block << level) + (from & before),
          .count = before + 1 - (from & before)};
}

std::vector<RowRun> Placement::GetRuns(int variable, int server) const {
  std::vector<RowRun> runs;
  const int64_t rows = part(variable, server).rows;
  for (int64_t local = 0; local < rows; local += runs.back().count) {
    RowRun& run = runs.emplace_back(GetRun(server, local));
    run.count = std::min(run.count, rows - local);
  }
  return runs;
}

// Calls copy(offset in the part, offset in the whole, floats) for each contiguous run.
template <class Copy>
void Placement::ForEachRun(int variable, int server, int64_t first, int64_t count,
                           Copy copy) const {
  const Part& part = this->part(variable, server);
  if (!is_table_[static_cast<size_t>(variable)]) return copy(0, part.first + first, count);
  int64_t done = 0;
  while (done < count) {
    const RowRun run = GetRun(server, (first + done) / part.cols);
    const int64_t col = (first + done) % part.cols;
    const int64_t floats = std::min(run.count * part.cols - col, count - done);
    copy(done, run.first * part.cols + col, floats);
    done += floats;
  }
}

void Placement::Cut(int variable, int server, const float* whole, int64_t first,
                    std::span<float> part) const {
  ForEachRun(variable, server, first, static_cast<int64_t>(part.size()),
             [&](int64_t to, int64_t from, int64_t floats) {
               std::copy_n(whole + from, floats, part.data() + to);
             });
}

void Placement::Paste(int variable, int server, std::span<const float> part, int64_t first,
                      float* whole) const {
  ForEachRun(variable, server, first, static_cast<int64_t>(part.size()),
             [&](int64_t from, int64_t to, int64_t floats) {
               std::copy_n(part.data() + from, floats, whole + to);
             });
}

}  // namespace muster::ps
