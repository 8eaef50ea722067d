// Vocabulary columns: TensorFlow's HashTable lookup with IdTableWithHashBuckets' unknown words.
#include <algorithm>
#include <bit>

#include "muster/base/same_bytes.h"
#include "muster/features/fingerprint.h"
#include "muster/features/ids.h"
#include "muster/features/remainder.h"

namespace muster::features {
namespace {

// Open addressing with linear probing, at most half full; a slot's id is -1 while it is free.
// Small vocabularies fit a few cache lines. `Slot` has `int32_t id`.
template <typename Slot>
class WordTable {
 public:
  explicit WordTable(size_t words) : mask_(std::bit_ceil(2 * words) - 1), slots_(mask_ + 1) {}

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

class StringVocabulary final : public IdLookup {
 public:
  StringVocabulary(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        words_(column.words),
        table_(column.words.size()),
        unknown_(column) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t fingerprint = Fingerprint64(std::string_view(words_[i]));
      table_.Insert(fingerprint, {fingerprint, static_cast<int32_t>(i)});
    }
  }

  bool needs_fingerprints() const override { return true; }

  absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    const uint64_t* const fingerprints = scratch.fingerprints[field()].data() + first;
    const std::string_view* const values = rows.column(field()).strings.data() + first;
    for (int i = 0; i < count; ++i) {
      if (values[i].empty() && !list()) {
        ids[i] = kMissing;
        continue;
      }
      const int32_t id = table_
                             .Find(fingerprints[i],
                                   [&](const Slot& slot) {
                                     return slot.fingerprint == fingerprints[i] &&
                                            SameBytes(words_[slot.id], values[i]);
                                   })
                             .id;
      if (id >= 0) {
        ids[i] = id;
      } else {
        ids[i] = unknown_.has_buckets ? unknown_.Id(fingerprints[i]) : unknown_.default_id;
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Slot {
    uint64_t fingerprint = 0;
    int32_t id = -1;
  };
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
