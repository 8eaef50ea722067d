// Client: the chief's part, which loads a whole state into the servers and saves it from them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

// The slices of all variables on one server, in order; if not `whole`, without the tables that
// servers save.
class Client::Slices {
 public:
  Slices(const Client& client, size_t server, int64_t generation, bool whole)
      : client_(client),
        server_(static_cast<int>(server)),
        generation_(generation),
        whole_(whole) {}

  // None after the last one.
  std::optional<Slice> Next() {
    for (; variable_ < client_.variables_.size(); ++variable_, slot_ = -1) {
      if (!whole_ && client_.variables_[variable_].is_saved_by_servers()) continue;
      const int64_t elements =
          client_.placement_.part(static_cast<int>(variable_), server_).elements();
      for (; slot_ < static_cast<int>(client_.variables_[variable_].slots()); ++slot_, first_ = 0) {
        if (first_ >= elements) continue;
        const int64_t count = std::min(kFloatsAtOnce, elements - first_);
        const Slice slice = {.generation = generation_,
                             .variable = static_cast<uint32_t>(variable_),
                             .slot = slot_,
                             .first = first_,
                             .count = count};
        first_ += count;
        return slice;
      }
    }
    return std::nullopt;
  }

 private:
  const Client& client_;
  const int server_;
  const int64_t generation_;
  const bool whole_;
  size_t variable_ = 0;
  int slot_ = -1;
  int64_t first_ = 0;
};

template <class AskFor, class Take>
absl::Status Client::ForEachSlice(int64_t generation, bool whole, AskFor ask, Take take) {
  std::vector<Slices> left;
  for (size_t server = 0; server < connections_.size(); ++server) {
    left.emplace_back(*this, server, generation, whole);
  }
  std::vector<std::optional<Slice>> asked(left.size());
  const auto ask_next = [&](size_t server) {
    asked[server] = left[server].Next();
    return asked[server] ? ask(server, *asked[server]) : absl::OkStatus();
  };
  for (size_t server = 0; server < left.size(); ++server) MUSTER_RETURN_IF_ERROR(ask_next(server));
  for (bool any = true; any;) {
    any = false;
    for (size_t server = 0; server < left.size(); ++server) {
      if (!asked[server]) continue;
      any = true;
      const Slice slice = *asked[server];
      MUSTER_RETURN_IF_ERROR(take(server, slice, [&] { return ask_next(server); }));
    }
  }
  return absl::OkStatus();
}

template <class A, class M>
absl::StatusOr<std::vector<A>> Client::AskAll(uint16_t type, const std::vector<M>& requests) {
  for (size_t server = 0; server < requests.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Send(server, type, requests[server]));
  }
  std::vector<A> answers;
  for (size_t server = 0; server < requests.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(answers.emplace_back(), Receive<A>(server));
  }
  return answers;
}

bool Client::servers_save_tables() const {
  return std::ranges::any_of(variables_, &Variable::is_saved_by_servers);
}

absl::StatusOr<int> Client::FindOneWithoutFolder(const std::string& path, const std::string& text) {
  const std::vector<ReadFile> requests(connections_.size(), {.path = path});
  MUSTER_ASSIGN_OR_RETURN(const auto answers, AskAll<FileText>(kReadFile, requests));
  const auto one =
      std::ranges::find_if(answers, [&](const auto& file) { return file.text != text; });
  return one == answers.end() ? -1 : static_cast<int>(one - answers.begin());
}

absl::Status Client::LoadServers(int64_t generation, const Memory& memory, bool whole) {
  const auto send = [&](size_t server, Slice slice) {
    const int variable = static_cast<int>(slice.variable);
    slice_.resize(static_cast<size_t>(slice.count));
    placement_.Cut(variable, static_cast<int>(server), memory(variable, slice.slot), slice.first,
                   slice_);
    slice.values = slice_;
    return Send(server, kLoad, slice);
  };
  return ForEachSlice(generation, whole, send,
                      [&](size_t server, const Slice&, auto ask_next) -> absl::Status {
                        MUSTER_RETURN_IF_ERROR(Receive<Empty>(server).status());
                        return ask_next();
                      });
}

absl::Status Client::LoadAll(const Ready& ready, const Memory& memory,
                             const DynamicMemory& dynamic_table,
                             const std::optional<std::string>& checkpoint) {
  const std::vector<Begin> begin(connections_.size(), {.generation = ready.generation});
  MUSTER_RETURN_IF_ERROR(AskAll<Empty>(kBegin, begin).status());
  MUSTER_RETURN_IF_ERROR(LoadServers(ready.generation, memory, !checkpoint.has_value()));
  if (checkpoint && servers_save_tables()) {
    const std::vector<LoadTables> load(connections_.size(),
                                       {.generation = ready.generation, .checkpoint = *checkpoint});
    MUSTER_RETURN_IF_ERROR(AskAll<Empty>(kLoadTables, load).status());
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].grows() || (checkpoint && variables_[i].is_saved_by_servers())) continue;
    MUSTER_RETURN_IF_ERROR(LoadKeys(ready.generation, i, *dynamic_table(static_cast<int>(i))));
  }
  for (size_t server = connections_.size(); server-- > 0;) {
    MUSTER_RETURN_IF_ERROR(Ask<Empty>(server, kReady, ready).status());
  }
  return absl::OkStatus();
}

absl::Status Client::FetchServers(int64_t generation, const Memory& memory, bool whole) {
  const auto ask = [&](size_t server, const Slice& slice) { return Send(server, kFetch, slice); };
  return ForEachSlice(
      generation, whole, ask,
      [&](size_t server, const Slice& slice, auto ask_next) -> absl::Status {
        MUSTER_ASSIGN_OR_RETURN(const Slice got, Receive<Slice>(server));
        if (got.values.size() != static_cast<size_t>(slice.count)) {
          return Lost(server, absl::DataLossError("sent another slice than the requested one"));
        }
        MUSTER_RETURN_IF_ERROR(ask_next());  // the server prepares it meanwhile
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
                                     const Memory& memory, const DynamicMemory& dynamic_table,
                                     TableSave* tables) {
  auto held = TrySaveAll(generation, sequence, step, memory, dynamic_table, tables);
  if (held.ok()) return held;
  // Servers stop holding pulls back for this save when its connections are closed.
  for (auto& connection : connections_) connection.reset();
  closed_ = absl::AbortedError(held.status().message());
  return held;
}

absl::StatusOr<Held> Client::TrySaveAll(int64_t generation, int64_t sequence, int64_t step,
                                        const Memory& memory, const DynamicMemory& dynamic_table,
                                        TableSave* tables) {
  Hold hold = {.generation = generation, .step = step};
  MUSTER_ASSIGN_OR_RETURN(Held held, HoldLead(hold, sequence));
  hold.sequences = held.sequences;
  hold.word = held.word;
  if (spec_.training.has_backups()) hold.step = held.step;
  for (size_t server = 1; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Ask<Held>(server, kHold, hold).status());
  }
  if (tables != nullptr && servers_save_tables()) {
    std::vector<SaveTables> save;
    for (const std::string& path : tables->paths) {
      save.push_back({.generation = generation, .path = path});
    }
    MUSTER_ASSIGN_OR_RETURN(auto saved, AskAll<SavedTables>(kSaveTables, save));
    tables->saved = std::move(saved);
  }
  MUSTER_RETURN_IF_ERROR(FetchServers(generation, memory, tables == nullptr));
  for (size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = variables_[i];
    if (!variable.grows() || (tables != nullptr && variable.is_saved_by_servers())) continue;
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
