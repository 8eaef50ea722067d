// Vocabulary columns: TensorFlow's HashTable lookup, with IdTableWithHashBuckets for unknown words.
#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_split.h"

#include "muster/base/same_bytes.h"
#include "muster/features/column_type.h"
#include "muster/features/fingerprint.h"
#include "muster/features/remainder.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

constexpr uint64_t kMaxVocabularyBytes = uint64_t{1} << 30;
// up to so many words the table may be four times as large, for fewer collisions
constexpr size_t kFewWords = 1000;

// A hash table with open addressing and linear probing, at most half full; a free slot has id -1.
// Small vocabularies fit in a few cache lines. `Slot` must have `int32_t id`.
template <typename Slot>
class WordTable {
 public:
  explicit WordTable(size_t words)
      : mask_(std::bit_ceil((words < kFewWords ? 4 : 2) * words) - 1), slots_(mask_ + 1) {}

  // Returns the slot for which is_word holds, or else the free slot where the word belongs. All
  // bits of `hash` must be mixed.
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

// What a word that is not in the table gets as its id.
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

// Counts the values of one Lookup() in its Scratch.
class CountedWords {
 public:
  void AddMissing() { ++missing_; }
  void AddUnknown(size_t value) {
    if (unknown_++ == 0) first_ = value;
  }

  // `show` prints a value by its number.
  template <typename Show>
  void Store(const IdLookup* lookup, const std::string& column, int values, const Scratch& scratch,
             const Show& show) const {
    WordCount& count = scratch.words[lookup];
    if (count.column.empty()) count.column = column;
    if (count.unknown == 0 && unknown_ > 0) count.example = show(first_);
    count.values += static_cast<uint64_t>(values) - missing_;
    count.unknown += unknown_;
  }

 private:
  uint64_t missing_ = 0, unknown_ = 0;
  size_t first_ = 0;
};

// The first and the last bytes of a word; together with the word's size they determine a short
// word.
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
        name_(column.name),
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
    CountedWords counted;
    for (int i = 0; i < count; ++i) {
      if (values[i].empty() && !list()) {
        ids[i] = kMissing;
        counted.AddMissing();
        continue;
      }
      const int32_t id = Find(values[i]);
      if (id >= 0) {
        ids[i] = id;
      } else {
        counted.AddUnknown(static_cast<size_t>(i));
        ids[i] = unknown_.has_buckets ? unknown_.Id(scratch.fingerprints[field()][first + i])
                                      : unknown_.default_id;
      }
    }
    counted.Store(this, name_, count, scratch, [&](size_t i) { return Shown(values[i]); });
    return absl::OkStatus();
  }

 private:
  struct Slot {
    WordEnds ends{""};
    size_t size = 0;
    int32_t id = -1;
  };

  // Returns -1 if the value is none of the words.
  int32_t Find(std::string_view value) const {
    const WordEnds ends(value);
    const auto is_value = [&](const Slot& slot) {
      return slot.ends == ends && slot.size == value.size() &&
             (value.size() <= WordEnds::kMostBytes || SameBytes(words_[slot.id], value));
    };
    return table_.Find(ends.Hash(value.size()), is_value).id;
  }

  const std::string name_;
  std::vector<std::string> words_;
  WordTable<Slot> table_;
  UnknownWords unknown_;
};

class IntVocabulary final : public IdLookup {
 public:
  IntVocabulary(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        name_(column.name),
        table_(column.words.size()),
        unknown_(column) {
    for (size_t i = 0; i < column.words.size(); ++i) {
      const int64_t word = *ParseIntWord(column.words[i]);
      table_.Insert(Mixed(word), {word, static_cast<int32_t>(i)});
    }
  }

  bool needs_fingerprints() const override { return unknown_.has_buckets; }

  absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    const int64_t* const values = rows.column(field()).ints.data() + first;
    CountedWords counted;
    for (int i = 0; i < count; ++i) {
      const int64_t value = values[i];
      if (value == -1 && !list()) {
        ids[i] = kMissing;
        counted.AddMissing();
        continue;
      }
      const int32_t id =
          table_.Find(Mixed(value), [&](const Slot& slot) { return slot.word == value; }).id;
      if (id >= 0) {
        ids[i] = id;
      } else {
        counted.AddUnknown(static_cast<size_t>(i));
        ids[i] = unknown_.has_buckets ? unknown_.Id(scratch.fingerprints[field()][first + i])
                                      : unknown_.default_id;
      }
    }
    counted.Store(this, name_, count, scratch, [&](size_t i) { return StrCat(values[i]); });
    return absl::OkStatus();
  }

 private:
  struct Slot {
    int64_t word = 0;
    int32_t id = -1;
  };
  static uint64_t Mixed(int64_t value) { return FingerprintCat64(0, static_cast<uint64_t>(value)); }

  const std::string name_;
  WordTable<Slot> table_;
  UnknownWords unknown_;
};

// Reads a vocabulary file: one word per line, LF or CRLF; the last line may lack its end.
absl::StatusOr<std::vector<std::string>> ReadWords(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxVocabularyBytes));
  std::vector<std::string> words = absl::StrSplit(text, '\n');
  if (!words.empty() && words.back().empty()) words.pop_back();
  for (std::string& word : words) {
    if (!word.empty() && word.back() == '\r') word.pop_back();
  }
  return words;
}

class VocabularyColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kVocabulary; }
  std::string_view name() const override { return "vocabulary"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& files,
             ColumnSpec* column) const override {
    node.CheckKeys({"vocabulary", "words", "file", "oov_buckets", "default"});
    column->input = node.At("vocabulary").AsString();
    column->oov_buckets = node.Int("oov_buckets", 0, 0, kMaxTableRows);
    column->default_id = node.Int("default", -1, -1, kMaxTableRows);
    if (node.ok() && node.Has("words") == node.Has("file")) {
      node.Fail("needs either 'words' (a list) or 'file' (one word per line)");
    }
    if (node.ok() && column->oov_buckets > 0 && column->default_id >= 0) {
      node.Fail("give either 'oov_buckets' or 'default', not both");
    }
    column->words = node.Strings("words");
    if (node.ok() && node.Has("file")) {
      column->words_file = io::JoinPath(files.folder, node.At("file").AsString());
      auto words = ReadWords(files.files, column->words_file);
      if (words.ok()) {
        column->words = *std::move(words);
      } else {
        node.Fail(StrCat("vocabulary file: ", ToStd(words.status().message())));
      }
    }
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "vocabulary", column.input);
    if (column.words_file.empty()) {
      formats::EmitTexts(out, "words", column.words);
    } else {
      formats::EmitText(out, "file", column.words_file);
    }
    if (column.oov_buckets > 0) formats::EmitNumber(out, "oov_buckets", column.oov_buckets);
    if (column.default_id >= 0) formats::EmitNumber(out, "default", column.default_id);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, check.IntOrString("a vocabulary column"));
    if (column.words.empty()) return Invalid("its vocabulary has no words");
    MUSTER_RETURN_IF_ERROR(CheckWords(field->type, column.words));
    if (column.oov_buckets < 0 || column.oov_buckets > kMaxTableRows) {
      return Invalid("oov_buckets is ", column.oov_buckets, "; it must be in [0, ", kMaxTableRows,
                     "]");
    }
    if (column.oov_buckets > 0 && column.default_id != -1) {
      return Invalid("has both oov_buckets and a default id; unknown words can only go to one");
    }
    MUSTER_RETURN_IF_ERROR(check.NumIds());
    return check.DefaultId();
  }
  std::string FindCrossFault(const ColumnSpec& /*column*/) const override { return ""; }

  int64_t NumIds(const FeatureSpec& /*spec*/, const ColumnSpec& column) const override {
    return static_cast<int64_t>(column.words.size()) + column.oov_buckets;
  }
  std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema,
                                       const ColumnSpec& column) const override {
    return MakeVocabularyLookup(schema, column);
  }
};

}  // namespace

std::unique_ptr<IdLookup> MakeVocabularyLookup(const formats::Schema& schema,
                                               const ColumnSpec& column) {
  if (schema.fields[schema.Find(column.input)].type == formats::ValueType::kInt) {
    return std::make_unique<IntVocabulary>(schema, column);
  }
  return std::make_unique<StringVocabulary>(schema, column);
}

const ColumnType& GetVocabularyColumn() {
  static const VocabularyColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
