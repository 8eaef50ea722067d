// The fixture of the tests of drafts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/io/memory_file_system.h"
#include "muster/model/draft/draft.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

class DraftTest : public ::testing::Test {
 protected:
  // Drafts a model file from a data file with this text. The YAML must be a valid model file, which
  // becomes `spec_`.
  absl::StatusOr<Draft> Try(const std::string& text, const std::string& label,
                            const std::string& path = "data.csv") {
    EXPECT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
    auto profile = data::ProfileData(*files_, {.patterns = {path}, .wanted = label});
    if (!profile.ok()) return profile.status();
    profile_ = *std::move(profile);
    request_.label = label;
    request_.data_name = path;
    auto draft = DraftModel(profile_, request_);
    if (!draft.ok()) return draft.status();
    auto spec = ParseModelSpec(*files_, draft->yaml, "model.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status() << "\n" << draft->yaml;
    if (spec.ok()) spec_ = *std::move(spec);
    return draft;
  }
  Draft Make(const std::string& text, const std::string& label,
             const std::string& path = "data.csv") {
    auto draft = Try(text, label, path);
    EXPECT_TRUE(draft.ok()) << draft.status();
    return draft.ok() ? *std::move(draft) : Draft();
  }
  // Drafts for rows of "x,y" with these values of y.
  Draft WithLabels(const std::vector<std::string>& labels) {
    std::string text = "x,y\n";
    for (size_t i = 0; i < 30; ++i) text += StrCat(i % 7, ",", labels[i % labels.size()], "\n");
    return Make(text, "y");
  }
  // Returns how a column with these values is used; they are repeated to 60 rows if `repeat`.
  DraftColumn Column(const std::vector<std::string>& values, bool repeat = true,
                     const std::string& name = "x") {
    std::string text = StrCat("other,", name, ",y\n");
    const size_t rows = repeat ? 60 : values.size();
    for (size_t i = 0; i < rows; ++i) {
      text += StrCat(i % 5, ",", values[i % values.size()], ",", i % 2, "\n");
    }
    const Draft draft = Make(text, "y");
    return draft.columns.size() == 2 ? draft.columns[1] : DraftColumn();
  }
  static std::vector<std::string> Numbered(const std::string& prefix, size_t count, size_t step) {
    std::vector<std::string> values;
    for (size_t i = 0; i < count; ++i) values.push_back(StrCat(prefix, 1000 + i * step % 991));
    return values;
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  DraftRequest request_;
  data::Profile profile_;
  ModelSpec spec_;
};

}  // namespace muster::model
