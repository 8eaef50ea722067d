#include "muster/model/keras/exported_saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "muster/formats/bundle.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasVariable;
using formats::DataType;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = KerasVariable::Kind;

constexpr const char* kGraph = "_CHECKPOINTABLE_OBJECT_GRAPH";

std::string_view BytesOfFloats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// An export with a variable of each kind, and trained weights in another order.
class ExportServingTest : public testing::Test {
 protected:
  void SetUp() override {
    model_.folder = "export";
    Variable("kernel", Kind::kDense, {2, 3}, true);
    Variable("table", Kind::kTable, {4, 2}, true);
    Variable("frozen", Kind::kTable, {3, 1}, false);
    Variable("scale", Kind::kDense, {}, true);
    Variable("mean", Kind::kState, {3}, false);
    Variable("seed", Kind::kSeed, {2}, false);
    model_.variables.back().type = DataType::kInt64;
    Variable("word", Kind::kDense, {1}, false);
    model_.variables.back().type = DataType::kString;
    WriteTemplate(*files_);
    Train("mean", 1, 3);
    Train("table", 4, 2);
    Train("kernel", 2, 3);
    Train("scale", 1, 1);
  }

  void Variable(const std::string& name, Kind kind, std::vector<int64_t> shape, bool trainable) {
    model_.variables.push_back(
        {.name = name, .kind = kind, .shape = std::move(shape), .trainable = trainable});
  }

  void Train(const std::string& name, int64_t rows, int64_t cols) {
    specs_.push_back({.name = name, .shape = {rows, cols}, .initializer = {}});
    std::vector<float>& values = trained_.emplace_back(rows * cols);
    for (float& value : values) value = static_cast<float>(++count_);
    views_.push_back({values.data(), rows, cols});
  }

  static std::string Key(size_t i) { return StrCat("vars/", i, "/.ATTRIBUTES/VARIABLE_VALUE"); }

  void WriteTemplate(io::FileSystem& files,
                     const std::string& folder = "export/before_training") const {
    for (const char* const name : {"variables", "assets"}) {
      ASSERT_TRUE(files.MakeFolders(io::JoinPath(folder, name)).ok());
    }
    for (const char* const name : {"saved_model.pb", "fingerprint.pb", "assets/words.txt"}) {
      ASSERT_TRUE(
          io::WriteFileAtomically(files, io::JoinPath(folder, name), StrCat("of ", name)).ok());
    }
    auto writer =
        *formats::BundleWriter::Create(files, io::JoinPath(folder, "variables/variables"));
    for (size_t i = 0; i < model_.variables.size(); ++i) {
      const KerasVariable& variable = model_.variables[i];
      if (variable.type == DataType::kString) {
        const std::string word = "word";
        ASSERT_TRUE(writer->AddStrings(Key(i), variable.shape, {&word, 1}).ok());
        continue;
      }
      const std::string bytes(
          *formats::ElementCount(variable.shape) * formats::DataTypeBytes(variable.type),
          static_cast<char>('A' + i));
      ASSERT_TRUE(writer->Add(Key(i), variable.type, variable.shape, bytes).ok());
    }
    const std::string graph = "the object graph";
    ASSERT_TRUE(writer->AddStrings(kGraph, {}, {&graph, 1}).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  absl::Status Export(const std::string& folder = "served/1") {
    return ExportServing(*files_, model_, specs_, views_, folder);
  }

  std::string Failure() {
    const absl::Status status = Export();
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::IsNotFound(files_->Stat("served/1").status()));
    return std::string(status.message());
  }

  std::string Read(const formats::BundleReader& bundle, size_t i) {
    std::string bytes(bundle.tensors().at(Key(i)).bytes, '\0');
    EXPECT_TRUE(bundle.Read(Key(i), bytes).ok());
    return bytes;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  engine::tensorflow::KerasExport model_;
  std::vector<engine::VariableSpec> specs_;
  std::vector<std::vector<float>> trained_;
  std::vector<engine::VariableView> views_;
  int count_ = 0;
};

TEST_F(ExportServingTest, CopiesAllButWhatBelongsToTheInitialValues) {
  const absl::Status status = Export("served/1/");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(*files_->List("served"), ElementsAre("1"));
  EXPECT_THAT(*files_->List("served/1"), ElementsAre("assets", "saved_model.pb", "variables"));
  EXPECT_EQ(*io::ReadFile(*files_, "served/1/saved_model.pb"), "of saved_model.pb");
  EXPECT_EQ(*io::ReadFile(*files_, "served/1/assets/words.txt"), "of assets/words.txt");
  EXPECT_THAT(*files_->List("served/1/variables"),
              ElementsAre("variables.data-00000-of-00001", "variables.index"));
}

TEST_F(ExportServingTest, TrainedValuesAreWrittenUnderTheirKeys) {
  ASSERT_TRUE(Export().ok());
  const auto bundle = formats::BundleReader::Open(*files_, "served/1/variables/variables");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->tensors().size(), model_.variables.size() + 1);
  EXPECT_EQ(Read(**bundle, 0), BytesOfFloats(trained_[2]));
  EXPECT_EQ(Read(**bundle, 1), BytesOfFloats(trained_[1]));
  EXPECT_EQ(Read(**bundle, 3), BytesOfFloats(trained_[3]));
  EXPECT_EQ(Read(**bundle, 4), BytesOfFloats(trained_[0]));
  EXPECT_EQ((*bundle)->tensors().at(Key(0)).shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT((*bundle)->tensors().at(Key(3)).shape, ElementsAre());
}

TEST_F(ExportServingTest, TheTemplateOfAnOlderExportIsFound) {
  ASSERT_TRUE(files_->RemoveAll("export/before_training").ok());
  WriteTemplate(*files_, "export/serving");
  ASSERT_TRUE(Export().ok());
  EXPECT_EQ(*io::ReadFile(*files_, "served/1/saved_model.pb"), "of saved_model.pb");
}

TEST_F(ExportServingTest, EverythingElseIsTheTemplates) {
  ASSERT_TRUE(Export().ok());
  const auto bundle = *formats::BundleReader::Open(*files_, "served/1/variables/variables");
  EXPECT_EQ(Read(*bundle, 2), std::string(12, 'C'));
  EXPECT_EQ(Read(*bundle, 5), std::string(16, 'F'));
  EXPECT_THAT(*bundle->ReadStrings(Key(6)), ElementsAre("word"));
  EXPECT_THAT(*bundle->ReadStrings(kGraph), ElementsAre("the object graph"));
}

TEST_F(ExportServingTest, RefusesAFolderThatExists) {
  ASSERT_TRUE(files_->MakeFolders("served/1").ok());
  const absl::Status status = Export();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(*files_->List("served/1"), ElementsAre());
}

TEST_F(ExportServingTest, RefusesWeightsThatAreNotTheModels) {
  specs_[1].name = "tables";
  EXPECT_THAT(Failure(), testing::AllOf(HasSubstr("no weights for 'table'"), HasSubstr("export")));
  specs_[1].name = "table";
  specs_.push_back({.name = "other", .shape = {1}, .initializer = {}});
  EXPECT_THAT(Failure(), HasSubstr("4 weights were given for 5 variables"));
  views_.push_back({trained_[0].data(), 1, 1});
  EXPECT_THAT(Failure(), HasSubstr("export has no variable 'other'"));
  specs_.pop_back();
  views_.pop_back();
  views_[1].rows = 5;
  EXPECT_THAT(Failure(), testing::AllOf(HasSubstr("'table' are 5 x 2"), HasSubstr("8 elements")));
  views_[1].rows = 4;
  EXPECT_TRUE(Export().ok());
}

TEST_F(ExportServingTest, RefusesATemplateOfAnotherModel) {
  model_.variables[2].shape = {1, 3};
  EXPECT_THAT(Failure(),
              testing::AllOf(HasSubstr("vars/2/"), HasSubstr("another type or shape"),
                             HasSubstr("'frozen'"), HasSubstr("export the model again")));
  model_.variables[2].shape = {3, 1};
  Variable("more", Kind::kDense, {1}, false);
  EXPECT_THAT(Failure(), testing::AllOf(HasSubstr("vars/7/"), HasSubstr("is missing")));
}

TEST_F(ExportServingTest, ABrokenTemplateIsRefused) {
  const std::string data = "export/before_training/variables/variables.data-00000-of-00001";
  std::string bytes = *io::ReadFile(*files_, data);
  // The byte belongs to the frozen table; the trained variables of the template are not read.
  bytes[bytes.find('C')] ^= 1;
  ASSERT_TRUE(io::WriteFileAtomically(*files_, data, bytes).ok());
  EXPECT_THAT(Failure(), HasSubstr("checksum"));
  ASSERT_TRUE(files_->RemoveAll("export/before_training").ok());
  EXPECT_THAT(Failure(), HasSubstr("export/before_training"));
}

// Whatever fails, the folder is either complete or absent, and nothing else is left.
TEST_F(ExportServingTest, AFailureAtAnyChangeLeavesNothing) {
  io::FaultFileSystem counting(*files_);
  ASSERT_TRUE(ExportServing(counting, model_, specs_, views_, "served/0").ok());
  using enum io::FileOperation;
  int failures = 0;
  for (const auto operation :
       {kOpen, kRead, kMakeFolders, kCreate, kWrite, kSync, kClose, kRename}) {
    for (int64_t n = 1; n <= counting.count(operation); ++n) {
      const auto memory = io::NewMemoryFileSystem();
      WriteTemplate(*memory);
      io::FaultFileSystem faulty(*memory);
      faulty.FailNth(operation, n, absl::ResourceExhaustedError("made to fail"));
      const absl::Status status = ExportServing(faulty, model_, specs_, views_, "served/1");
      EXPECT_TRUE(absl::IsResourceExhausted(status))
          << status << " at " << static_cast<int>(operation) << " number " << n;
      EXPECT_THAT(status.message(), HasSubstr("served/1"));
      if (const auto names = memory->List("served"); names.ok()) {
        EXPECT_THAT(*names, ElementsAre()) << static_cast<int>(operation) << " number " << n;
      }
      ++failures;
    }
  }
  EXPECT_GE(failures, 20);
}

}  // namespace
}  // namespace muster::model
