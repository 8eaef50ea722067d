// Helpers for tests of model files: the smallest file, and a fixture that changes one thing in it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "muster/io/memory_file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// The smallest valid file; tests change one thing in it.
constexpr std::string_view kSmallSpec = R"(inputs:
  x: float
  y: int
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x]}
)";

// Returns `spec` with its first `old` replaced by `text`.
inline std::string WithText(std::string_view spec, std::string_view old, std::string_view text) {
  std::string changed(spec);
  return changed.replace(changed.find(old), old.size(), text);
}

class ModelSpecTest : public testing::Test {
 protected:
  ModelSpecTest() : files_(io::NewMemoryFileSystem()) {
    EXPECT_TRUE(files_->MakeFolders("specs").ok());
    EXPECT_TRUE(io::WriteFileAtomically(*files_, "specs/towns.txt", "rome\r\nparis\nbonn").ok());
  }

  absl::StatusOr<ModelSpec> Parse(std::string_view yaml) {
    return ParseModelSpec(*files_, yaml, "specs/m.yaml");
  }

  // Returns the error for kSmallSpec with its first `from` replaced by `to`.
  std::string ErrorAfter(std::string_view from, std::string_view to) {
    std::string yaml(kSmallSpec);
    const size_t place = yaml.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    yaml.replace(place, from.size(), to);
    const auto spec = Parse(yaml);
    EXPECT_FALSE(spec.ok()) << yaml;
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << spec.status();
    return std::string(spec.status().message());
  }

  // Expects that the printed spec parses to an equal spec.
  void ExpectPrintsBack(const ModelSpec& spec) {
    const auto again = Parse(PrintModelSpec(spec));
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << PrintModelSpec(spec);
    EXPECT_EQ(*again, spec) << PrintModelSpec(spec);
  }

  std::unique_ptr<io::FileSystem> files_;
};

}  // namespace muster::model
