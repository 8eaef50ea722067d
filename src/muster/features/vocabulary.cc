// Vocabulary columns: TensorFlow's HashTable lookup with IdTableWithHashBuckets' unknown words.
#include <algorithm>
#include <bit>
#include <cstring>

#include "muster/base/same_bytes.h"
#include "muster/features/fingerprint.h"
#include "muster/features/ids.h"
#include "muster/features/remainder.h"

namespace muster::features {
namespace {

constexpr size_t kFewWords = 1000;  // whose table may be four times as large, for fewer collisions

// Open addressing with linear probing, at most half full; a slot's id is -1 while it is free.
// Small vocabularies fit a few cache lines. `Slot` has `int32_t id`.
template <typename Slot>
class WordTable {
 public:
  explicit WordTable(size_t words)
      : mask_(std::bit_ceil((words < kFewWords ? 4 : 2) * words) - 1), slots_(mask_ + 1) {}

  // The slot for which is_word holds, or the free one where it would be. `hash`: all bits mixed.
  template <typename IsWord>
  const Slot& Find(uint64_t hash, const IsWord& is_word) const {
    size_t i = hash & mask_;
    while (slots_[i].id >= 0 && !is_word(slots_[i])) i = (i + 1) & mask_;
    return slots_[i];
  }

  void Insert(uint64_t hash, const Slot& slot) {
    size_t i = hash & mask_;
    while (slots_[i].id >= 0) i = (i + 1) & mask_;
    slots_[i] = slot;
  }

 private:
  size_t mask_;
  std::vector<Slot> slots_;
};

// What becomes of a word that is not in the table.
struct UnknownWords {
  explicit UnknownWords(const ColumnSpec& column)
      : default_id(column.default_id),
        has_buckets(column.oov_buckets > 0),
        first_bucket(static_cast<int64_t>(column.words.size())),
        buckets(std::max<uint64_t>(1, static_cast<uint64_t>(column.oov_buckets))) {}

  int64_t Id(uint64_t fingerprint) const {
    return first_bucket + static_cast<int64_t>(buckets.Of(fingerprint));
  }

  int64_t default_id;
  bool has_buckets;
  int64_t first_bucket;
  Remainder buckets;
};

// The first and the last bytes of a word, which together with its size are all of a short one.
struct WordEnds {
  static constexpr size_t kMostBytes = 16;

  explicit WordEnds(std::string_view word) {
    const char* const end = word.data() + word.size();
    if (word.size() >= 8) {
      first = LoadWord<uint64_t>(word.data());
      last = LoadWord<uint64_t>(end - 8);
    } else if (word.size() >= 4) {
      first = LoadWord<uint32_t>(word.data());
      last = LoadWord<uint32_t>(end - 4);
    } else if (!word.empty()) {
      first = static_cast<uint8_t>(word[0]) | static_cast<uint8_t>(word[word.size() / 2]) << 8;
      last = static_cast<uint8_t>(end[-1]);
    }
  }

  uint64_t Hash(size_t size) const {
    const uint64_t mixed = (first ^ size) * 0x9e3779b97f4a7c15 + last * 0xc6a4a7935bd1e995;
    return mixed ^ mixed >> 32;
  }

  bool operator==(const WordEnds&) const = default;

  uint64_t first = 0, last = 0;

 private:
  template <typename Word>
  static Word LoadWord(const char* bytes) {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
};

class StringVocabulary final : public IdLookup {
 public:
  StringVocabulary(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        words_(column.words),
        table_(column.words.size()),
        unknown_(column) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const WordEnds ends(words_[i]);
      const size_t size = words_[i].size();
      table_.Insert(ends.Hash(size), {ends, size, static_cast<int32_t>(i)});
    }
  }

  bool needs_fingerprints() const override { return unknown_.has_buckets; }

  absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    const std::string_view* const values = rows.column(field()).strings.data() + first;
    for (int i = 0; i < count; ++i) {
      if (values[i].empty() && !list()) {
        ids[i] = kMissing;
        continue;
      }
      const int32_t id = Find(values[i]);
      if (id >= 0) {
        ids[i] = id;
      } else {
        ids[i] = unknown_.has_buckets ? unknown_.Id(scratch.fingerprints[field()][first + i])
                                      : unknown_.default_id;
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Slot {
    WordEnds ends{""};
    size_t size = 0;
    int32_t id = -1;
  };

  // -1: it is none of the words.
  int32_t Find(std::string_view value) const {
    const WordEnds ends(value);
    const auto is_value = [&](const Slot& slot) {
      return slot.ends == ends && slot.size == value.size() &&
             (value.size() <= WordEnds::kMostBytes || SameBytes(words_[slot.id], value));
    };
    return table_.Find(ends.Hash(value.size()), is_value).id;
  }

  std::vector<std::string> words_;
  WordTable<Slot> table_;
  UnknownWords unknown_;
};

class IntVocabulary final : public IdLookup {
 public:
  IntVocabulary(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)), table_(column.words.size()), unknown_(column) {
    for (size_t i = 0; i < column.words.size(); ++i) {
      const int64_t word = *ParseIntWord(column.words[i]);
      table_.Insert(Mixed(word), {word, static_cast<int32_t>(i)});
    }
  }

  bool needs_fingerprints() const override { return unknown_.has_buckets; }

  absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    const int64_t* const values = rows.column(field()).ints.data() + first;
    for (int i = 0; i < count; ++i) {
      const int64_t value = values[i];
      if (value == -1 && !list()) {
        ids[i] = kMissing;
        continue;
      }
      const int32_t id =
          table_.Find(Mixed(value), [&](const Slot& slot) { return slot.word == value; }).id;
      if (id >= 0) {
        ids[i] = id;
      } else {
        ids[i] = unknown_.has_buckets ? unknown_.Id(scratch.fingerprints[field()][first + i])
                                      : unknown_.default_id;
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Slot {
    int64_t word = 0;
    int32_t id = -1;
  };
  static uint64_t Mixed(int64_t value) { return FingerprintCat64(0, static_cast<uint64_t>(value)); }

  WordTable<Slot> table_;
  UnknownWords unknown_;
};

}  // namespace

std::unique_ptr<IdLookup> MakeVocabularyLookup(const formats::Schema& schema,
                                               const ColumnSpec& column) {
  if (schema.fields[schema.Find(column.input)].type == formats::ValueType::kInt) {
    return std::make_unique<IntVocabulary>(schema, column);
  }
  return std::make_unique<StringVocabulary>(schema, column);
}

}  // namespace muster::features
