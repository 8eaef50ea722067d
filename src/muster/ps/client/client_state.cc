// Client: the chief's part, which loads a whole state into the servers and saves it from them.
#include <algorithm>
#include <utility>

#include "muster/ps/client/client_ask.h"

namespace muster::ps {
namespace {

constexpr int64_t kFloatsAtOnce = int64_t{256} << 10;  // the most floats in one message

// The most keys in one message.
int64_t KeysAtOnce(const tables::DynamicTableSpec& spec) {
  return std::max<int64_t>(1,
                           kFloatsAtOnce / (spec.cols * (1 + static_cast<int64_t>(spec.slots()))));
}

}  // namespace

template <class Visit>
absl::Status Client::ForEachSlice(size_t server, int64_t generation, Visit visit) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const int64_t elements =
        placement_.part(static_cast<int>(i), static_cast<int>(server)).elements();
    for (int slot = -1; slot < static_cast<int>(variables_[i].slots()); ++slot) {
      for (int64_t first = 0; first < elements; first += kFloatsAtOnce) {
        const int64_t count = std::min(kFloatsAtOnce, elements - first);
        MUSTER_RETURN_IF_ERROR(visit(Slice{.generation = generation,
                                           .variable = static_cast<uint32_t>(i),
                                           .slot = slot,
                                           .first = first,
                                           .count = count}));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Client::LoadServer(size_t server, int64_t generation, const Memory& memory) {
  MUSTER_RETURN_IF_ERROR(Ask<Empty>(server, kBegin, Begin{.generation = generation}).status());
  return ForEachSlice(server, generation, [&](Slice slice) {
    const int variable = static_cast<int>(slice.variable);
    slice_.resize(static_cast<size_t>(slice.count));
    placement_.Cut(variable, static_cast<int>(server), memory(variable, slice.slot), slice.first,
                   slice_);
    slice.values = slice_;
    return Ask<Empty>(server, kLoad, slice).status();
  });
}

absl::Status Client::LoadAll(const Ready& ready, const Memory& memory,
                             const DynamicMemory& dynamic_table) {
  for (size_t server = 0; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(LoadServer(server, ready.generation, memory));
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].grows()) continue;
    MUSTER_RETURN_IF_ERROR(LoadKeys(ready.generation, i, *dynamic_table(static_cast<int>(i))));
  }
  for (size_t server = connections_.size(); server-- > 0;) {
    MUSTER_RETURN_IF_ERROR(Ask<Empty>(server, kReady, ready).status());
  }
  return absl::OkStatus();
}

absl::Status Client::FetchServer(size_t server, int64_t generation, const Memory& memory) {
  return ForEachSlice(server, generation, [&](const Slice& slice) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const Slice got, Ask<Slice>(server, kFetch, slice));
    if (got.values.size() != static_cast<size_t>(slice.count)) {
      return Lost(server, absl::DataLossError("sent another slice than the requested one"));
    }
    const int variable = static_cast<int>(slice.variable);
    placement_.Paste(variable, static_cast<int>(server), got.values, slice.first,
                     memory(variable, slice.slot));
    return absl::OkStatus();
  });
}

absl::StatusOr<Held> Client::HoldLead(const Hold& hold, int64_t sequence) {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(Held held, Ask<Held>(0, kHold, hold));
    if (held.settle == 0) return held;
    MUSTER_RETURN_IF_ERROR(MeasureAndSettle({.generation = hold.generation,
                                             .sequence = sequence,
                                             .step = held.step,
                                             .word = held.word}));
  }
}

absl::StatusOr<Held> Client::SaveAll(int64_t generation, int64_t sequence, int64_t step,
                                     const Memory& memory, const DynamicMemory& dynamic_table) {
  auto held = TrySaveAll(generation, sequence, step, memory, dynamic_table);
  if (held.ok()) return held;
  // Servers stop holding pulls back for this save when its connections are closed.
  for (auto& connection : connections_) connection.reset();
  return held;
}

absl::StatusOr<Held> Client::TrySaveAll(int64_t generation, int64_t sequence, int64_t step,
                                        const Memory& memory, const DynamicMemory& dynamic_table) {
  Hold hold = {.generation = generation, .step = step};
  MUSTER_ASSIGN_OR_RETURN(Held held, HoldLead(hold, sequence));
  hold.sequences = held.sequences;
  hold.word = held.word;
  if (spec_.training.has_backups()) hold.step = held.step;
  for (size_t server = 1; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Ask<Held>(server, kHold, hold).status());
  }
  for (size_t server = 0; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(FetchServer(server, generation, memory));
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].grows()) continue;
    MUSTER_RETURN_IF_ERROR(FetchKeys(generation, i, dynamic_table(static_cast<int>(i))));
  }
  for (size_t server = 0; server < connections_.size(); ++server) {
    const absl::Status released =
        Ask<Empty>(server, kRelease, Begin{.generation = generation}).status();
    // The state is already complete: a server that was told to end may close without an answer.
    if (!absl::IsAborted(released)) MUSTER_RETURN_IF_ERROR(released);
  }
  return held;
}

absl::Status Client::LoadKeys(int64_t generation, size_t variable,
                              const tables::DynamicTableImage& image) {
  const tables::DynamicTableSpec spec = variables_[variable].dynamic_table_spec();
  const int64_t most = KeysAtOnce(spec);
  std::vector<tables::DynamicTableEntries> parts(connections_.size());
  const auto send = [&](size_t server) {
    tables::DynamicTableEntries& part = parts[server];
    const absl::Status sent = Ask<Empty>(server, kLoadKeys,
                                         KeySlice{.generation = generation,
                                                  .variable = static_cast<uint32_t>(variable),
                                                  .keys = std::move(part.keys),
                                                  .counts = std::move(part.counts),
                                                  .last_steps = std::move(part.last_steps),
                                                  .values = part.values})
                                  .status();
    part = tables::DynamicTableEntries();
    return sent;
  };
  for (int64_t i = 0; i < image.size(); ++i) {
    const auto server = static_cast<size_t>(placement_.GetServerOfKey(image.GetKey(i)));
    image.CopyTo(i, spec, &parts[server]);
    if (std::ssize(parts[server].keys) < most) continue;
    MUSTER_RETURN_IF_ERROR(send(server));
  }
  for (size_t server = 0; server < parts.size(); ++server) {
    if (!parts[server].keys.empty()) MUSTER_RETURN_IF_ERROR(send(server));
  }
  return absl::OkStatus();
}

absl::Status Client::FetchKeys(int64_t generation, size_t variable,
                               tables::DynamicTableImage* image) {
  const tables::DynamicTableSpec spec = variables_[variable].dynamic_table_spec();
  const int64_t most = KeysAtOnce(spec);
  const size_t floats = static_cast<size_t>(spec.cols) * (1 + spec.slots());
  image->Clear(spec);
  for (size_t server = 0; server < connections_.size(); ++server) {
    for (int64_t first = 0, got = most; got == most; first += got) {
      MUSTER_ASSIGN_OR_RETURN(KeySlice part,
                              Ask<KeySlice>(server, kFetchKeys,
                                            KeySlice{.generation = generation,
                                                     .variable = static_cast<uint32_t>(variable),
                                                     .first = first,
                                                     .count = most}));
      got = std::ssize(part.keys);
      const auto rows = static_cast<size_t>(std::count(part.counts.begin(), part.counts.end(), 0));
      if (got > most || part.counts.size() != part.keys.size() ||
          part.last_steps.size() != part.keys.size() || part.values.size() != rows * floats) {
        return absl::AbortedError(
            StrCat("ps-", server, ": sent numbers of keys, counts and rows that do not match"));
      }
      image->Append({.keys = std::move(part.keys),
                     .counts = std::move(part.counts),
                     .last_steps = std::move(part.last_steps),
                     .values = {part.values.begin(), part.values.end()}},
                    spec);
    }
  }
  image->Sort(spec);
  return absl::OkStatus();
}

}  // namespace muster::ps
