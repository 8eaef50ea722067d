// The notes of a training about data that the model, or the previous run, did not expect.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_replace.h"

#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/train/loop/evaluations.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Has no space left for event files.
class NoEvents : public io::FaultFileSystem {
 public:
  using FaultFileSystem::FaultFileSystem;
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForWrite(const std::string& path) override {
    if (path.find("tfevents") == std::string::npos) return FaultFileSystem::OpenForWrite(path);
    return absl::ResourceExhaustedError(StrCat("open for writing ", path, ": No space left"));
  }
};

class DataNotesTest : public TrainingTest {
 protected:
  // The notes that the training writes for people.
  std::string GetNotes(const std::string& folder, const TrainSpec& spec,
                       ProgressStyle style = ProgressStyle::kLog,
                       std::string_view model = kTestSpec) {
    std::FILE* const said = std::tmpfile();
    EXPECT_NE(said, nullptr);
    Progress progress(style, fileno(said), clock_);
    const auto result = NewEstimator(model, folder)->Train(spec, progress, never_);
    EXPECT_TRUE(result.ok()) << result.status();
    std::string text(static_cast<size_t>(lseek(fileno(said), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fileno(said), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    std::fclose(said);
    return text;
  }
};

TEST_F(DataNotesTest, AVocabularyThatMatchesNothingIsNamed) {
  std::string upper = Csv(300);
  for (const std::string color : {"red", "green", "blue"}) {
    for (size_t at = 0; (at = upper.find(color, at)) != std::string::npos;) {
      upper[at] = static_cast<char>(upper[at] - 'a' + 'A');
    }
  }
  Write("upper.csv", upper);
  const std::string said = GetNotes("upper", Training("upper.csv"));
  EXPECT_THAT(said, AllOf(HasSubstr("warning: column 'color' finds no id in 100 % of the first 300 "
                                    "rows: values seen are 'Red', 'Green', 'Blue'"),
                          HasSubstr("its words are 'red', 'green', 'blue'")));
  EXPECT_THAT(said, Not(HasSubstr("color_hash")));
  EXPECT_THAT(GetNotes("lower", Training()), Not(HasSubstr("warning")));
  const std::string quiet = GetNotes("quiet", Training("upper.csv"), ProgressStyle::kNone);
  EXPECT_THAT(quiet, HasSubstr("warning: column 'color' finds no id"));
}

TEST_F(DataNotesTest, AnUnscaledColumnOfAClickModelIsNamed) {
  const auto notes = [&](const std::string& folder, std::string_view model) {
    return GetNotes(folder, Training("large.csv"), ProgressStyle::kLog,
                    StrCat(R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
columns:
  id: {numeric: id}
  x: {numeric: x}
  color: {hash: color, buckets: 10}
  e: {embedding: color, dimension: 2}
)",
                           model));
  };
  std::string large = "id,x,color,y\n";
  for (int i = 0; i < 320; ++i) large += StrCat(50'000 + i, ",", i % 7, ",red,", i % 2, "\n");
  Write("large.csv", large);
  const auto named = AllOf(HasSubstr("column 'id' reaches the model with values up to 50319"),
                           HasSubstr("id: {numeric: \"id\", normalize: auto}"));
  EXPECT_THAT(notes("dcn", R"(
model:
  type: dcn
  cross: {layers: 1}
  dnn: {columns: [id, e], hidden_units: [4], optimizer: {sgd: {learning_rate: 1e-30}}})"),
              AllOf(named, HasSubstr("in model.dnn (it is 1e-30)")));
  EXPECT_THAT(notes("normalised", R"(
model: {type: dcn, dnn: {columns: [id, e], hidden_units: [4], input_batch_norm: true}})"),
              Not(HasSubstr("reaches the model")));
  EXPECT_THAT(notes("deepfm", R"(
model:
  type: deepfm
  linear: {columns: [color]}
  fm: {columns: [id, e], optimizer: {sgd: {learning_rate: 1e-15}}}
  dnn: {columns: [id, e], hidden_units: [4], input_batch_norm: true})"),
              AllOf(named, HasSubstr("in model.fm (it is 1e-15)")));
  const std::string towers = R"(
  query: {columns: [x], hidden_units: [4], optimizer: {sgd: {learning_rate: 1e-12}}}
  item: {columns: [e], hidden_units: [4]}
  dimension: 2
)";
  EXPECT_THAT(notes("towers", StrCat("model:\n  type: two_tower", towers, R"(
head: {in_batch_softmax: {sampling_probability: id}})")),
              Not(HasSubstr("reaches the model")))
      << "any number that is proportional to the probability will do";
  const std::string both = absl::StrReplaceAll(towers, {{"[x]", "[id]"}});
  EXPECT_THAT(notes("query", StrCat("model:\n  type: two_tower", both)),
              AllOf(named, HasSubstr("in model.query (it is 1e-12)")));
}

TEST_F(DataNotesTest, DataThatWasEditedInPlaceIsNamed) {
  files_ = io::NewLocalFileSystem();
  std::string folder = StrCat(testing::TempDir(), "muster-notes-XXXXXX");
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string data = StrCat(folder, "/train.csv"), model = StrCat(folder, "/model");
  const auto write = [&](const std::string& text, time_t modified) {
    Write(data, text);
    const timespec times[] = {{.tv_sec = modified, .tv_nsec = 0},
                              {.tv_sec = modified, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, data.c_str(), times, 0), 0);
  };
  constexpr time_t kLongAgo = 1'000'000'000, kFarAhead = 4'000'000'000;
  const std::string csv = Csv(300);
  write(csv, kLongAgo);
  TrainSpec first = Training(data);
  first.max_steps = 5;
  EXPECT_THAT(GetNotes(model, first), Not(HasSubstr("changed")));
  first.max_steps = 8;
  EXPECT_THAT(GetNotes(model, first), Not(HasSubstr("changed")));

  std::string edited = csv;
  edited[edited.find("red")] = 'b';
  write(edited, kFarAhead);
  EXPECT_THAT(GetNotes(model, Training(data)),
              AllOf(HasSubstr(StrCat("warning: ", data, " changed after ", model,
                                     "/model.ckpt-8 was saved")),
                    HasSubstr("give --fresh-data to begin at its start")));
  EXPECT_TRUE(files_->RemoveAll(folder).ok());
}

TEST_F(DataNotesTest, ATrainingContinuesWithoutItsEventFile) {
  const std::unique_ptr<io::FileSystem> memory = std::move(files_);
  files_ = std::make_unique<NoEvents>(*memory);
  const std::string said = GetNotes("model", Training());
  const std::string warning = "warning: the event file cannot be written: open for writing ";
  EXPECT_THAT(said, AllOf(HasSubstr(StrCat(warning, "model/events.out.tfevents.")),
                          HasSubstr(": No space left; TensorBoard will show nothing")));
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << "once";
  EXPECT_EQ(checkpoint::FindLatest(*files_, "model")->prefix, "model/model.ckpt-57");
  files_ = io::NewMemoryFileSystem();
}

TEST_F(DataNotesTest, AMetricsNameIsCheckedBeforeTheFirstEvaluation) {
  const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (const char* const metric : {"auc", "loss", "average_loss", "accuracy"}) {
    EXPECT_TRUE(CheckMetric(*spec, metric, "rule").ok()) << metric;
  }
  const absl::Status unknown = CheckMetric(*spec, "acu", "rule");
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("rule: the evaluation has no metric 'acu' (did you mean 'auc'?)"));
}

}  // namespace
}  // namespace muster::train
