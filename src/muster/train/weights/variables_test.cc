#include "muster/train/weights/variables.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

// Three tables of 1.3 MB each, which lie in one block with their slots, and one of 5 MB.
constexpr std::string_view kModel = R"(
inputs: {a: string, b: string, y: int}
label: y
columns:
  a: {hash: a, buckets: 40000}
  b: {hash: b, buckets: 40001}
  small_a: {embedding: a, dimension: 8}
  small_b: {embedding: b, dimension: 8}
  small_c: {embedding: a, dimension: 8}
  large: {embedding: a, dimension: 32}
model:
  type: dnn
  dnn: {columns: [small_a, small_b, small_c, large], hidden_units: [3], optimizer: {adagrad: {}}}
)";

model::Model MakeModel() {
  const auto files = io::NewMemoryFileSystem();
  return model::BuildModel(model::ParseModelSpec(*files, kModel, "m.yaml").value()).value();
}

// The weights and slots of all variables.
std::vector<std::span<float>> GetBuffers(const Variables& variables) {
  std::vector<std::span<float>> buffers;
  for (size_t i = 0; i < variables.views().size(); ++i) {
    const auto floats = static_cast<size_t>(variables.specs()[i].elements());
    buffers.emplace_back(variables.views()[i].data, floats);
    for (float* const slot : variables.slots(static_cast<int>(i))) {
      buffers.emplace_back(slot, floats);
    }
  }
  return buffers;
}

std::vector<std::vector<float>> GetValues(const Variables& variables) {
  std::vector<std::vector<float>> values;
  for (const std::span<float> buffer : GetBuffers(variables)) {
    values.emplace_back(buffer.begin(), buffer.end());
  }
  return values;
}

void ExpectMemoryOfTheirOwn(const Variables& variables) {
  const auto buffers = GetBuffers(variables);
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_NE(buffers[i].data(), nullptr) << i;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[i].data()) % 64, 0u) << i;
    std::ranges::fill(buffers[i], static_cast<float>(i));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::vector<float> expected(buffers[i].size(), static_cast<float>(i));
    EXPECT_TRUE(std::ranges::equal(buffers[i], expected)) << i;
  }
}

TEST(VariablesTest, SmallOnesShareABlockAndHaveMemoryOfTheirOwn) {
  const model::Model model = MakeModel();
  const auto variables = Variables::Create(model, /*seed=*/1, /*with_slots=*/true).value();
  const auto buffers = GetBuffers(*variables);
  size_t together = 0;
  for (size_t i = 1; i < buffers.size(); ++i) {
    const float* const end = buffers[i - 1].data() + buffers[i - 1].size();
    together += buffers[i].data() >= end && buffers[i].data() < end + 16 ? 1 : 0;
  }
  EXPECT_GE(together, 4u);
  ExpectMemoryOfTheirOwn(*variables);
  ExpectMemoryOfTheirOwn(*Variables::Create(model, 1, /*with_slots=*/false).value());
}

TEST(VariablesTest, ValuesDoNotDependOnWhereTheyLie) {
  const model::Model model = MakeModel();
  const auto all = Variables::Create(model, /*seed=*/1, /*with_slots=*/true).value();
  const auto later = Variables::CreateWithout(
                         [](const engine::VariableSpec& spec) {
                           return spec.kind == engine::VariableKind::kTable;
                         },
                         model, /*seed=*/1)
                         .value();
  EXPECT_FALSE(later->is_whole());
  ASSERT_TRUE(later->AllocateRest().ok());
  EXPECT_EQ(GetValues(*later), GetValues(*all));
}

}  // namespace
}  // namespace muster::train
