#include "muster/model/spec/data_check.h"

#include "muster/formats/csv_test_util.h"
#include "muster/model/spec/model_spec_test_util.h"

namespace muster::model {
namespace {

class DataCheckTest : public ModelSpecTest {
 protected:
  // The message for a file that is given as a model file.
  std::string Load(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(io::WriteFileAtomically(*files_, name, bytes).ok());
    const auto spec = LoadModelSpec(*files_, name);
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << spec.status();
    return std::string(spec.status().message());
  }
};

TEST_F(DataCheckTest, DataIsNamedWithTheWayToAModelFile) {
  const std::string csv = "age,name\n1,a\n2,b\n";
  std::string big = csv;
  for (int i = 0; i < 300'000; ++i) big += "12,abcdefg\n";
  const std::pair<std::string, std::string> all[] = {
      {"rows.csv", csv},
      {"one_column.csv", "x\n1\n"},
      {"keys.csv", "a,b\nq: r,c\n"},
      {"big.csv", big},
      {"rows.csv.gz", formats::Gzip(csv)},
      {"part-00000", formats::Gzip(csv)},
      {"adult.data", "39, State-gov, 77516\n50, Private, 83311\n"},
      {"train.txt", "0\t1\t\t68fd1e64\n0\t2\t0\t68fd1e64\n"},
      {"rows.jsonl", "{\"x\": 1, \"y\": 0}\n{\"x\": 2, \"y\": 1}\n"},
      {"events", "{\"x\": 1, \"y\": 0}\n{\"x\": 2, \"y\": 1}\n"},
  };
  for (const auto& [name, bytes] : all) {
    EXPECT_EQ(Load(name, bytes), StrCat(name, " is data, and no model file: muster init ", name,
                                        " --label COLUMN writes a model file from it"));
  }
}

TEST_F(DataCheckTest, AModelFileWithAMistakeIsNoData) {
  for (const std::string name : {"model.yaml", "model", "model.json"}) {
    EXPECT_EQ(Load(name, "inputs: {x: float, y: int}, label: y\n").find("is data"),
              std::string::npos);
    EXPECT_EQ(
        Load(name, std::string(kSmallSpec) + "trian: {epochs: 1, batch_size: 2}\n").find("is data"),
        std::string::npos);
    EXPECT_EQ(Load(name, "{\"inputs\": {\"x\": \"float\"}, \"lable\": \"y\"}").find("is data"),
              std::string::npos);
    EXPECT_EQ(Load(name, "").find("is data"), std::string::npos);
  }
  EXPECT_TRUE(absl::IsNotFound(LoadModelSpec(*files_, "none.csv").status()));
}

}  // namespace
}  // namespace muster::model
