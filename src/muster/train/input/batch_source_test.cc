#include "muster/train/input/batch_source.h"

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

class BatchSourceTest : public TrainingTest {
 protected:
  // Gives the rows of Csv(rows), `batch` at a time, with the requested fields.
  OpenRows GetRows(int rows, int batch) {
    return [this, rows, batch](const formats::Schema& schema) -> absl::StatusOr<NextRows> {
      const auto lines = std::make_shared<std::vector<std::string>>();
      std::string csv = Csv(rows);
      for (size_t at = csv.find('\n') + 1; at < csv.size();) {
        const size_t end = csv.find('\n', at);
        lines->push_back(csv.substr(at, end - at));
        at = end + 1;
      }
      opened_.push_back(schema.fields.size());
      const int x = schema.Find("x"), color = schema.Find("color"), y = schema.Find("y");
      return [=, next = size_t{0}](formats::Columns* columns) mutable -> absl::StatusOr<bool> {
        const size_t end = std::min(next + batch, lines->size());
        for (; next < end; ++next) {
          const std::vector<std::string> cells = Cells((*lines)[next]);
          columns->mutable_column(x).floats.push_back(std::stof(cells[1]));
          columns->mutable_column(color).strings.push_back(columns->Store(cells[2]));
          if (y >= 0) columns->mutable_column(y).ints.push_back(std::stoi(cells[3]));
          columns->AddRow();
        }
        return columns->rows() > 0;
      };
    };
  }
  static std::vector<std::string> Cells(const std::string& line) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    return cells;
  }

  std::vector<size_t> opened_;
};

TEST_F(BatchSourceTest, RowsInMemoryTrainLikeTheSameRowsInAFile) {
  TrainSpec from_file = Training();
  from_file.input.reader.shuffle = false;
  from_file.input.reader.epochs = 1;
  ASSERT_TRUE(Train("file", from_file).ok());
  TrainSpec from_memory;
  from_memory.input_fn = RowsInput(GetRows(300, 16));
  const auto result = Train("memory", from_memory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 19);
  EXPECT_EQ(result->examples, 300u);
  EXPECT_TRUE(Weights("memory") == Weights("file"));
  EXPECT_THAT(opened_, testing::ElementsAre(3));  // x, color, y, without id
}

TEST_F(BatchSourceTest, EachTrainingOpensTheInputAgain) {
  TrainSpec spec;
  spec.input_fn = RowsInput(GetRows(32, 16));
  EXPECT_EQ(Train("model", spec)->step, 2);
  const auto again = Train("model", spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->first_step, 2);
  EXPECT_EQ(again->step, 4);
  EXPECT_EQ(opened_.size(), 2u);
}

TEST_F(BatchSourceTest, ErrorsOfTheUserEndTheTraining) {
  TrainSpec spec;
  spec.input_fn = RowsInput([](const formats::Schema&) -> absl::StatusOr<NextRows> {
    return [](formats::Columns*) -> absl::StatusOr<bool> {
      return absl::UnavailableError("the queue is gone");
    };
  });
  EXPECT_THAT(std::string(Train("model", spec).status().message()), HasSubstr("the queue is gone"));
}

TEST_F(BatchSourceTest, BatchesInMemoryRepeat) {
  features::FeatureBatch batch;
  batch.rows = 2;
  batch.dense = {{1, {0.5f, -1}}};
  batch.id_lists = {{{0, 2}, {}}, {{1, 2}, {}}};
  batch.labels = {1, 0};
  TrainSpec spec;
  spec.input_fn = BatchesInput({batch, batch, batch}, /*epochs=*/2);
  const auto result = Train("model", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 6);
  EXPECT_EQ(result->examples, 12u);
  spec.input_fn = BatchesInput({batch}, /*epochs=*/0);
  spec.steps = 5;
  EXPECT_EQ(Train("model", spec)->step, 11);
  spec.input_fn = BatchesInput({}, /*epochs=*/0);
  EXPECT_EQ(Train("model", spec)->step, 11);
}

}  // namespace
}  // namespace muster::train
