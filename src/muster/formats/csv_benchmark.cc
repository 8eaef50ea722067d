// Measures how many CSV rows per second become columns: 13 numbers, 26 words of 8 characters and a
// label, 339 bytes per row.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "muster/base/random.h"
#include "muster/formats/csv.h"
#include "muster/formats/csv_test_util.h"

namespace muster::formats {
namespace {

constexpr int kRows = 20000;

Schema ClickSchema() {
  Schema schema;
  const auto add = [&](std::string name, ValueType type) {
    Field field;
    field.name = std::move(name);
    field.type = type;
    field.has_default = true;
    if (type == ValueType::kInt) field.default_value = int64_t{0};
    if (type == ValueType::kFloat) field.default_value = 0.0f;
    if (type == ValueType::kString) field.default_value = std::string();
    schema.fields.push_back(std::move(field));
  };
  add("label", ValueType::kInt);
  for (int i = 1; i <= 13; ++i) add(StrCat("I", i), ValueType::kFloat);
  for (int i = 1; i <= 26; ++i) add(StrCat("C", i), ValueType::kString);
  return schema;
}

// `quote`: puts every word in quotes.
std::string ClickFile(bool quote) {
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::string text;
  for (const Field& field : ClickSchema().fields) {
    text += (text.empty() ? "" : ",") + field.name;
  }
  text += '\n';
  char cell[32];
  for (int row = 0; row < kRows; ++row) {
    text += "01"[random.Below(2)];
    for (int i = 0; i < 13; ++i) {
      std::snprintf(cell, sizeof cell, ",%.6g", random.UniformDouble() * 1000);
      text += cell;
    }
    for (int i = 0; i < 26; ++i) {
      std::snprintf(cell, sizeof cell, quote ? ",\"%08x\"" : ",%08x", random.Next32());
      text += cell;
    }
    text += '\n';
  }
  return text;
}

void BM_CsvRows(benchmark::State& state) {
  const auto file = StringFile(ClickFile(state.range(0)));
  for (auto _ : state) {
    auto reader = *CsvRowReader::Open(file);
    std::string_view row;
    while (*reader->Next(&row)) benchmark::DoNotOptimize(row.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_CsvRows)->ArgName("quoted")->Arg(0)->Arg(1);

void BM_CsvDecode(benchmark::State& state) {
  const auto file = StringFile(ClickFile(state.range(0)));
  Columns columns(ClickSchema());
  for (auto _ : state) {
    auto reader = *CsvRowReader::Open(file);
    auto decoder = *NewCsvDecoder(ClickSchema(), reader->header());
    std::string_view row;
    while (*reader->Next(&row)) {
      columns.Clear();
      if (!decoder->Decode(row, &columns).ok()) state.SkipWithError("a row was not decoded");
    }
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_CsvDecode)->ArgName("quoted")->Arg(0)->Arg(1);

}  // namespace
}  // namespace muster::formats
