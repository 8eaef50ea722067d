#include "muster/train/input/parts.h"

#include <charconv>
#include <numeric>
#include <utility>

namespace muster::train {
namespace {

// Parts per replica at the largest number of replicas: with kPartsEach of them no share is larger
// than another by more than a sixteenth.
constexpr int kMostPartsEach = 32, kPartsEach = 16;

}  // namespace

int PartsFor(int fewest, int most) {
  int64_t parts = 1;
  for (int replicas = fewest; replicas <= most; ++replicas) {
    parts = std::lcm(parts, int64_t{replicas});
    if (parts > int64_t{most} * kMostPartsEach) return most * kPartsEach;
  }
  return static_cast<int>(parts);
}

std::vector<int> GetParts(int parts, int rank, int size) {
  std::vector<int> own;
  for (int part = rank; part < parts; part += size) own.push_back(part);
  return own;
}

std::string PartNote(int part, const data::Position& position) {
  return StrCat(part, " ", data::SerializePosition(position));
}

std::optional<size_t> MergePartNotes(const std::vector<std::string>& notes, int parts,
                                     std::vector<std::string>* positions) {
  std::vector<std::pair<size_t, std::string>> taken;
  for (size_t replica = 0; replica < notes.size(); ++replica) {
    const std::string& note = notes[replica];
    if (note.empty()) continue;
    int part = -1;
    const char* const end = note.data() + note.size();
    const auto [stop, error] = std::from_chars(note.data(), end, part);
    if (error != std::errc() || part < 0 || part >= parts || stop == end || *stop != ' ') {
      return replica;
    }
    taken.emplace_back(part, std::string(stop + 1, end));
  }
  positions->resize(static_cast<size_t>(parts));
  for (auto& [part, position] : taken) (*positions)[part] = std::move(position);
  return std::nullopt;
}

}  // namespace muster::train
