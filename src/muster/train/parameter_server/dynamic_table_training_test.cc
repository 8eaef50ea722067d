// Trains with tables that grow, in one process and by parameter servers; no death may change the
// results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "muster/tables/key_order.h"
#include "muster/train/parameter_server/ps_training_test_support.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

// The two lists of items share a table; the linear part has its own table over one of the lists.
constexpr std::string_view kDynamicSpec = R"(
inputs: {id: int, user: int, seen: {type: string, list: true}, shown: string, y: int}
label: y
key: id
columns:
  user: {keys: user, admit_after: 2, expire_after: 16}
  seen: {keys: seen}
  shown: {keys: shown}
  user_embedding: {embedding: user, dimension: 4}
  seen_embedding: {embedding: seen, dimension: 3, shared: items}
  shown_embedding: {embedding: shown, dimension: 3, shared: items}
model:
  type: wide_deep
  linear: {columns: [user, shown], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn:
    {columns: [user_embedding, seen_embedding, shown_embedding], hidden_units: [8],
     optimizer: {adagrad: {learning_rate: 0.05}}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

class DynamicTrainingTest : public PsTrainingTest {
 protected:
  DynamicTrainingTest() { Write("train.csv", DynamicCsv(300, 1)); }

  // Some users appear often and others once; most of the early single users never appear again.
  static std::string DynamicCsv(int rows, uint64_t seed) {
    RandomStream random(seed, RandomPurpose::kSampleData, 0);
    std::string csv = "id,user,seen,shown,y\n";
    for (int i = 0; i < rows; ++i) {
      const uint64_t user = random.Below(4) == 0 ? 1'000'000'000'000 + i : random.Below(9);
      const uint64_t item = random.Below(12);
      std::string seen;
      for (uint64_t n = random.Below(3); n > 0; --n) {
        seen += StrCat(seen.empty() ? "" : "|", "item", random.Below(12));
      }
      const bool y = random.UniformDouble() < (user % 2 == item % 2 ? 0.9 : 0.1);
      csv += StrCat(i, ",", user, ",", seen, ",item", item, ",", y ? 1 : 0, "\n");
    }
    return csv;
  }

  std::vector<int64_t> Keys(const std::string& folder, const std::string& variable) {
    const std::string bytes = Weights(folder).at(StrCat(variable, "/keys"));
    std::vector<int64_t> keys(bytes.size() / sizeof(int64_t));
    std::memcpy(keys.data(), bytes.data(), bytes.size());
    return keys;
  }

  // The logits, by record.
  std::vector<float> Logits(const std::string& folder, const std::string& data) {
    std::vector<float> logits;
    InputSpec input;
    input.source.patterns = {data};
    input.with_labels = false;
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto rows = NewEstimator(kDynamicSpec, folder)
                          ->Predict(
                              input,
                              [&](const InputBatch&, const engine::Predictions& predictions) {
                                const std::vector<float>& values =
                                    predictions.Find("logits")->floats;
                                logits.insert(logits.end(), values.begin(), values.end());
                                return absl::OkStatus();
                              },
                              progress);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return logits;
  }
};

constexpr char kUserTable[] =
    "dnn/input_from_feature_columns/input_layer/user_embedding/embedding_weights";

TEST_F(DynamicTrainingTest, OneProcessGrowsItsTablesAndLearns) {
  TrainSpec spec = Training();
  spec.input.reader.epochs = 40;
  ASSERT_TRUE(Train("model", spec, kDynamicSpec).ok());
  const std::vector<int64_t> users = Keys("model", kUserTable);
  EXPECT_TRUE(std::ranges::is_sorted(users, tables::IsKeyBefore));
  for (int64_t user = 0; user < 9; ++user) EXPECT_THAT(users, testing::Contains(user));
  // An epoch has 19 steps: few of the users that appear once in it are named twice within 16 steps.
  EXPECT_LT(users.size(), 45u);
  EXPECT_EQ(Keys("model", "items").size(), 12u);
  EXPECT_EQ(Keys("model", "linear/linear_model/user/weights"), users);
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = NewEstimator(kDynamicSpec, "model")->Evaluate(Evaluation(), progress);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& [name, value] : result->metrics) {
    if (name == "auc") {
      EXPECT_GT(value, 0.8);
    }
  }
}

TEST_F(DynamicTrainingTest, AKeyWithoutARowReadsZerosInPrediction) {
  ASSERT_TRUE(Train("model", Training(), kDynamicSpec).ok());
  Write("some.csv", "id,user,seen,shown,y\n1,3,item1,item2,0\n2,77,,neverseen,0\n3,78,,newer,1\n");
  const std::vector<float> logits = Logits("model", "some.csv");
  ASSERT_EQ(logits.size(), 3u);
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_EQ(logits[1], logits[2]);
}

TEST_F(DynamicTrainingTest, AWarmStartTakesKeysAndRows) {
  ASSERT_TRUE(Train("old", Training(), kDynamicSpec).ok());
  TrainSpec none = Training();
  none.max_steps = 1;
  const auto estimator = NewEstimator(kDynamicSpec, "new");
  estimator->set_warm_start({.from = "old"});
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = estimator->Train(none, progress, never_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Keys("new", "items"), Keys("old", "items"));
  EXPECT_THAT(Keys("new", kUserTable), IsSupersetOf(Keys("old", kUserTable)));
  // Rows that the one step has not touched are unchanged.
  const auto old_rows = Floats(Weights("old").at("items")),
             rows = Floats(Weights("new").at("items"));
  ASSERT_EQ(old_rows.size(), rows.size());
  float difference = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    difference = std::max(difference, std::abs(rows[i] - old_rows[i]));
  }
  EXPECT_LT(difference, 0.1f);
  EXPECT_GT(difference, 0);
}

TEST_F(DynamicTrainingTest, AResumedTrainingEqualsAnUninterruptedOne) {
  ASSERT_TRUE(Train("whole", Training(), kDynamicSpec).ok());
  TrainSpec first = Training();
  for (const int64_t steps : {7, 25}) {
    first.max_steps = steps;
    ASSERT_TRUE(Train("cut", first, kDynamicSpec).ok());
  }
  ASSERT_TRUE(Train("cut", Training(), kDynamicSpec).ok());
  ExpectSame("cut", "whole", 0);
}

TEST_F(DynamicTrainingTest, ServersGrowTheSameTablesAsOneProcess) {
  ASSERT_TRUE(Train("alone", Training(), kDynamicSpec).ok());
  for (const bool synchronous : {true, false}) {
    for (const int servers : {1, 3}) {
      const std::string folder = StrCat("served", synchronous, servers);
      TrainWithPs({.synchronous = synchronous, .replicas = 1, .servers = servers}, Training(),
                  folder, kDynamicSpec);
      ExpectSame(folder, "alone", 1e-6f);
      EXPECT_EQ(Keys(folder, kUserTable), Keys("alone", kUserTable));
    }
  }
}

TEST_F(DynamicTrainingTest, AnotherNumberOfServersOrNoneContinuesFromACheckpoint) {
  TrainWithPs({.replicas = 2, .servers = 1}, Training(), "whole", kDynamicSpec);
  TrainSpec first = Training();
  first.max_steps = 12;
  TrainWithPs({.replicas = 2, .servers = 2}, first, "cut", kDynamicSpec);
  TrainWithPs({.replicas = 2, .servers = 3}, Training(), "cut", kDynamicSpec);
  ExpectSame("cut", "whole", 1e-6f);
  EXPECT_EQ(Keys("cut", kUserTable), Keys("whole", kUserTable));
  // One process continues a training that was done on servers.
  TrainSpec more = Training();
  more.input.reader.epochs = 4;
  more.fresh_data = true;
  const auto result = Train("cut", more, kDynamicSpec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->step, 30);
}

TEST_F(DynamicTrainingTest, DeathsChangeNoByteInSynchronousTraining) {
  const Shape shape = {.replicas = 2, .servers = 2};
  TrainWithPs(shape, Training(), "unbroken", kDynamicSpec);
  for (const int victim : {0, 1}) {
    const std::string folder = StrCat("lost", victim);
    TestServers servers(shape, kDynamicSpec);
    std::atomic<int> kills = 0, deaths = 0;
    TrainWithPs(shape, servers, Training(), folder, kDynamicSpec,
                [&](int rank, Session& session) -> absl::Status {
                  if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) {
                    servers.Kill(victim);
                  }
                  if (rank == 1 && session.step >= 15 && deaths.exchange(1) == 0) {
                    return absl::InternalError(kKilled);
                  }
                  return absl::OkStatus();
                });
    EXPECT_EQ(kills, 1);
    EXPECT_EQ(deaths, 1);
    ExpectSame(folder, "unbroken", 0);
  }
}

// Each server writes its own keys, in the order that a chief would have given all of them.
TEST_F(DynamicTrainingTest, ServersInTheChiefsFolderSaveTheirKeys) {
  for (const bool synchronous : {true, false}) {
    const std::string by_chief = StrCat("chief", synchronous),
                      by_servers = StrCat("ps", synchronous);
    Shape shape = {.synchronous = synchronous,
                   .replicas = synchronous ? 2 : 1,  // batches of several have no fixed order
                   .servers = 3};
    TrainWithPs(shape, Training(), by_chief, kDynamicSpec);
    shape.files = files_.get();
    shape.model_dir = by_servers;
    TrainWithPs(shape, Training(), by_servers, kDynamicSpec);
    ExpectSame(by_servers, by_chief, 0);
    EXPECT_EQ(Keys(by_servers, kUserTable), Keys(by_chief, kUserTable));
    EXPECT_THAT(List(by_servers), Contains(StartsWith("model.ckpt-0.data-00003-of-00004")));
    EXPECT_THAT(List(by_servers), Not(Contains(HasSubstr(".tmp-"))));
    EXPECT_THAT(List(by_chief), Contains(StartsWith("model.ckpt-0.data-00000-of-00001")));
  }
}

TEST_F(DynamicTrainingTest, ServersLoadTheKeysOfOthers) {
  const auto in_folder = [&](int servers) {
    return Shape{.replicas = 2, .servers = servers, .files = files_.get(), .model_dir = "cut"};
  };
  TrainWithPs({.replicas = 2, .servers = 1}, Training(), "whole", kDynamicSpec);
  TrainSpec part = Training();
  part.max_steps = 8;
  TrainWithPs(in_folder(2), part, "cut", kDynamicSpec);
  EXPECT_THAT(List("cut"), Contains("model.ckpt-8.data-00002-of-00003"));
  part.max_steps = 16;
  TrainWithPs(in_folder(3), part, "cut", kDynamicSpec);
  EXPECT_THAT(List("cut"), Contains("model.ckpt-16.data-00003-of-00004"));
  // One of these has another folder, so that the chief loads and saves.
  Shape with_chief = in_folder(2);
  with_chief.servers_in_folder = 1;
  part.max_steps = 20;
  TrainWithPs(with_chief, part, "cut", kDynamicSpec);
  EXPECT_THAT(List("cut"), Contains("model.ckpt-20.data-00000-of-00001"));
  Shape last = in_folder(2);
  TestServers servers(last, kDynamicSpec);
  std::atomic<int> kills = 0;
  TrainWithPs(last, servers, Training(), "cut", kDynamicSpec, [&](int rank, Session& session) {
    if (rank == 1 && session.step >= 24 && kills.exchange(1) == 0) servers.Kill(1);
    return absl::OkStatus();
  });
  EXPECT_EQ(kills, 1);
  ExpectSame("cut", "whole", 1e-6f);
  EXPECT_EQ(Keys("cut", kUserTable), Keys("whole", kUserTable));
}

TEST_F(DynamicTrainingTest, AWarmStartReachesServersThatSave) {
  ASSERT_TRUE(Train("old", Training(), kDynamicSpec).ok());
  TrainSpec few = Training();
  few.max_steps = 5;
  const auto start = [&](const std::string& folder, bool in_folder) {
    warm_start_from_ = "old";
    Shape shape = {.replicas = 2, .servers = 2};
    if (in_folder) shape.files = files_.get();
    shape.model_dir = folder;
    TrainWithPs(shape, few, folder, kDynamicSpec);
    EXPECT_THAT(Keys(folder, kUserTable), IsSupersetOf(Keys("old", kUserTable)));
  };
  start("by-servers", true);
  EXPECT_THAT(List("by-servers"), Contains(HasSubstr("-of-00003")));
  start("by-chief", false);
  EXPECT_THAT(List("by-chief"), Not(Contains(HasSubstr("-of-00003"))));
  ExpectSame("by-servers", "by-chief", 0);
}

TEST_F(DynamicTrainingTest, AsynchronousTrainingSurvivesReplicasAndServers) {
  const Shape shape = {.synchronous = false, .replicas = 3, .servers = 2};
  TestServers servers(shape, kDynamicSpec);
  std::atomic<int> killed = 0;
  TrainWithPs(shape, servers, Training(), "model", kDynamicSpec, [&](int rank, Session& session) {
    if (rank == 1 && session.step >= 20 && killed.exchange(1) == 0) servers.Kill(1);
    return absl::OkStatus();
  });
  EXPECT_EQ(killed, 1);
  EXPECT_EQ(Keys("model", "items").size(), 12u);
}

TEST_F(DynamicTrainingTest, AllReduceIsRefusedBeforeTraining) {
  TestCluster cluster(1);
  TrainSpec spec = Training();
  const auto replicas = cluster.New(0);
  spec.replicas = replicas.get();
  const auto result = Train("model", spec, kDynamicSpec);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ToStd(result.status().message()), HasSubstr("--ps"));
}

}  // namespace
}  // namespace muster::train
