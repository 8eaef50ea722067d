#include "muster/ps/server/key_files.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "muster/base/crc32c.h"
#include "muster/ps/server/row_runs.h"
#include "muster/tables/dynamic_table_columns.h"
#include "muster/tables/key_order.h"

namespace muster::ps {
namespace {

using tables::DynamicTable;
using tables::DynamicTableColumn;
using Kind = DynamicTableColumn::Kind;

constexpr size_t kPieceBytes = size_t{256} << 10;

// The places of keys in the order of a checkpoint.
using Order = std::vector<uint32_t>;

// `get_key` returns the key at a place of `keys`.
template <class Keys, class GetKey>
std::vector<std::pair<uint64_t, uint32_t>> Spread(const Keys& keys, GetKey get_key) {
  std::vector<std::pair<uint64_t, uint32_t>> spread;
  spread.reserve(keys.size());
  for (const auto& each : keys) {
    spread.emplace_back(tables::SpreadKey(get_key(each)), static_cast<uint32_t>(spread.size()));
  }
  return spread;
}

Order Sort(std::vector<std::pair<uint64_t, uint32_t>> spread) {
  std::ranges::sort(spread);
  Order order(spread.size());
  std::ranges::transform(spread, order.begin(), &std::pair<uint64_t, uint32_t>::second);
  return order;
}

int64_t GetNumber(const DynamicTable& table, Kind kind, uint32_t place) {
  switch (kind) {
    case Kind::kKeys:
      return table.keys()[place];
    case Kind::kLastSteps:
      return table.last_steps()[place];
    case Kind::kWaitingKeys:
      return table.waiting()[place].key;
    case Kind::kWaitingCounts:
      return table.waiting()[place].count;
    default:
      return table.waiting()[place].last_step;
  }
}

// Copies what the column has of the keys at `places` to `to`.
void CopyColumn(const DynamicTable& table, const DynamicTableColumn& column,
                std::span<const uint32_t> places, char* to) {
  const size_t bytes = column.bytes_of_key();
  if (column.kind == Kind::kValues) {
    const float* const values = table.values(column.slot).data();
    for (const uint32_t place : places) {
      std::memcpy(to, values + place * static_cast<size_t>(column.cols), bytes);
      to += bytes;
    }
    return;
  }
  for (const uint32_t place : places) {
    const int64_t number = GetNumber(table, column.kind, place);
    std::memcpy(to, &number, bytes);
    to += bytes;
  }
}

// A server's own keys in a checkpoint, and where they are among all keys there.
struct OwnKeys {
  std::vector<int64_t> keys = {};
  std::vector<RowRun> runs = {};

  void Add(int64_t place, int64_t key) {
    if (runs.empty() || runs.back().first + runs.back().count != place) {
      runs.push_back({.local = std::ssize(keys), .first = place});
    }
    ++runs.back().count;
    keys.push_back(key);
  }
};

// Reads a table's columns from a checkpoint.
class ColumnReader {
 public:
  ColumnReader(const Variable& table, const formats::BundleReader& bundle, std::string checkpoint)
      : table_(table),
        bundle_(bundle),
        checkpoint_(std::move(checkpoint)),
        columns_(tables::GetDynamicTableColumns(table.tensors, table.cols)) {}

  std::span<const DynamicTableColumn> columns() const { return columns_; }

  // Checks that the checkpoint has all columns, for equal numbers of keys.
  absl::Status Check() const {
    uint64_t rows = kUnknown, waiting = kUnknown;
    for (const DynamicTableColumn& column : columns_) {
      MUSTER_RETURN_IF_ERROR(CheckColumn(column, column.is_of_waiting() ? &waiting : &rows));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<OwnKeys> ReadKeys(Kind kind, int server, int servers) const {
    OwnKeys own;
    MUSTER_RETURN_IF_ERROR(ForEach(kind, {}, [&](int64_t place, int64_t key) {
      if (tables::GetServerOfKey(key, servers) == server) own.Add(place, key);
    }));
    return own;
  }

  // Returns what a column has of the own keys.
  absl::StatusOr<std::vector<int64_t>> ReadNumbers(Kind kind, const OwnKeys& own) const {
    std::vector<int64_t> numbers;
    auto run = own.runs.begin();
    MUSTER_RETURN_IF_ERROR(ForEach(kind, GetWanted(own.runs), [&](int64_t place, int64_t number) {
      while (run != own.runs.end() && run->first + run->count <= place) ++run;
      if (run != own.runs.end() && run->first <= place) numbers.push_back(number);
    }));
    return numbers;
  }

 private:
  static constexpr uint64_t kUnknown = ~uint64_t{0};

  absl::Status CheckColumn(const DynamicTableColumn& column, uint64_t* keys) const {
    const auto type = column.cols == 0 ? formats::DataType::kInt64 : formats::DataType::kFloat;
    const auto found = bundle_.tensors().find(column.name);
    if (found == bundle_.tensors().end() || found->second.type != type) {
      return absl::FailedPreconditionError(StrCat("checkpoint ", checkpoint_, " has no tensor '",
                                                  column.name, "' of ", formats::DataTypeName(type),
                                                  ": it is of another model"));
    }
    if (*keys == kUnknown) *keys = found->second.bytes / column.bytes_of_key();
    if (found->second.bytes == *keys * column.bytes_of_key()) return absl::OkStatus();
    return absl::DataLossError(StrCat("table ", table_.name, ": checkpoint ", checkpoint_, " has ",
                                      *keys, " keys, but '", column.name,
                                      "' is of another number of keys"));
  }

  // Calls take(place, number) for each number of the column, or only for wanted slices.
  template <class Take>
  absl::Status ForEach(Kind kind, const formats::BundleReader::WantsRows& wants, Take take) const {
    const auto column = std::ranges::find(columns_, kind, &DynamicTableColumn::kind);
    return bundle_.ReadPieces(
        column->name, wants, [&](uint64_t offset, std::span<const char> piece) {
          int64_t number = 0;
          for (size_t at = 0; at + sizeof number <= piece.size(); at += sizeof number) {
            std::memcpy(&number, piece.data() + at, sizeof number);
            take(static_cast<int64_t>((offset + at) / sizeof number), number);
          }
          return absl::OkStatus();
        });
  }

  const Variable& table_;
  const formats::BundleReader& bundle_;
  const std::string checkpoint_;
  const std::vector<DynamicTableColumn> columns_;
};

// Gives the state keys with their counts and last steps. Keys without counts get rows of zeros,
// which are loaded afterwards.
absl::Status AddKeys(const Variable& table, uint32_t variable, std::span<const int64_t> keys,
                     std::span<const int64_t> counts, std::span<const int64_t> last_steps,
                     TableState& state) {
  const size_t floats = static_cast<size_t>(table.cols) * (1 + table.slots());
  const size_t at_once = std::max<size_t>(1, kPieceBytes / sizeof(float) / floats);
  const std::vector<float> zeros(std::min(at_once, keys.size()) * floats);
  for (size_t first = 0; first < keys.size(); first += at_once) {
    const size_t n = std::min(at_once, keys.size() - first);
    const auto cut = [&](std::span<const int64_t> numbers) {
      const auto part = numbers.subspan(first, n);
      return std::vector<int64_t>(part.begin(), part.end());
    };
    const bool have_rows = counts.empty();
    const absl::Status added =
        state.LoadKeys({.variable = variable,
                        .keys = cut(keys),
                        .counts = have_rows ? std::vector<int64_t>(n) : cut(counts),
                        .last_steps = cut(last_steps),
                        .values = std::span(zeros).first(have_rows ? n * floats : 0)});
    // The checkpoint has a key twice, or a count of 0.
    if (absl::IsInvalidArgument(added)) return absl::DataLossError(added.message());
    MUSTER_RETURN_IF_ERROR(added);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveKeys(const Variable& table, uint32_t variable, TableState& state,
                      io::WritableFile& file, SavedTables* saved) {
  uint64_t changes = 0;
  std::vector<std::pair<uint64_t, uint32_t>> spread, spread_waiting;
  MUSTER_RETURN_IF_ERROR(state.ReadKeys(variable, [&](const DynamicTable& read) {
    changes = read.changes();
    spread = Spread(read.keys(), [](int64_t key) { return key; });
    spread_waiting =
        Spread(read.waiting(), [](const tables::WaitingKey& waiting) { return waiting.key; });
  }));
  const Order rows = Sort(std::move(spread)), waiting = Sort(std::move(spread_waiting));
  saved->keys.push_back(std::ssize(rows));
  saved->keys.push_back(std::ssize(waiting));
  std::vector<char> piece;
  for (const auto& column : tables::GetDynamicTableColumns(table.tensors, table.cols)) {
    std::span<const uint32_t> left = column.is_of_waiting() ? waiting : rows;
    const size_t keys_at_once = std::max<size_t>(1, kPieceBytes / column.bytes_of_key());
    uint32_t crc = 0;
    while (!left.empty()) {
      const auto places = left.first(std::min(left.size(), keys_at_once));
      left = left.subspan(places.size());
      piece.resize(places.size() * column.bytes_of_key());
      bool has_changed = false;
      MUSTER_RETURN_IF_ERROR(state.ReadKeys(variable, [&](const DynamicTable& read) {
        has_changed = read.changes() != changes;
        if (!has_changed) CopyColumn(read, column, places, piece.data());
      }));
      if (has_changed) {
        return absl::AbortedError(StrCat("table ", table.name, " changed while it was saved"));
      }
      const std::string_view bytes(piece.data(), piece.size());
      crc = ExtendCrc32c(crc, bytes);
      MUSTER_RETURN_IF_ERROR(file.Append(bytes));
    }
    saved->checksums.push_back(crc);
  }
  return absl::OkStatus();
}

absl::Status LoadKeys(const Variable& table, uint32_t variable, int server, int servers,
                      const formats::BundleReader& bundle, const std::string& checkpoint,
                      TableState& state) {
  const ColumnReader reader(table, bundle, checkpoint);
  MUSTER_RETURN_IF_ERROR(reader.Check());
  MUSTER_ASSIGN_OR_RETURN(const OwnKeys rows, reader.ReadKeys(Kind::kKeys, server, servers));
  MUSTER_ASSIGN_OR_RETURN(const auto last_steps, reader.ReadNumbers(Kind::kLastSteps, rows));
  MUSTER_RETURN_IF_ERROR(AddKeys(table, variable, rows.keys, {}, last_steps, state));
  MUSTER_ASSIGN_OR_RETURN(const OwnKeys waiting,
                          reader.ReadKeys(Kind::kWaitingKeys, server, servers));
  MUSTER_ASSIGN_OR_RETURN(const auto counts, reader.ReadNumbers(Kind::kWaitingCounts, waiting));
  MUSTER_ASSIGN_OR_RETURN(const auto steps, reader.ReadNumbers(Kind::kWaitingLastSteps, waiting));
  MUSTER_RETURN_IF_ERROR(AddKeys(table, variable, waiting.keys, counts, steps, state));
  for (const DynamicTableColumn& column : reader.columns()) {
    if (column.kind != Kind::kValues) continue;
    MUSTER_RETURN_IF_ERROR(LoadTensor(bundle, column.name, rows.runs, table.cols,
                                      {.variable = variable, .slot = column.slot}, state));
  }
  return absl::OkStatus();
}

}  // namespace muster::ps
