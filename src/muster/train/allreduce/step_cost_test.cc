// Compares what each replica sends for a step and for a join with the cost model of docs/scale.md.
#include <gtest/gtest.h>

#include <thread>

#include "muster/collective/cost_model.h"
#include "muster/train/allreduce/proposal.h"
#include "muster/train/allreduce/test_replicas.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using net::transport::Traffic;

class StepCostTest : public TrainingTest, public testing::WithParamInterface<int> {
 protected:
  int64_t n() const { return GetParam(); }
  collective::CostModel model() const { return {.ranks = GetParam()}; }

  // A dense model of one layer.
  static std::string Spec(int units) {
    return StrCat(R"(
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [)",
                  units, "], optimizer: {adagrad: {learning_rate: 0.05}}}}\n",
                  "train: {batch_size: 16, epochs: 100, seed: 5}\n");
  }

  // Returns what each rank sends in a training of so many steps.
  std::vector<Traffic> Measure(const std::string& yaml, int64_t steps) {
    TestCluster cluster(GetParam());
    TrainSpec spec = Training();
    spec.max_steps = steps;
    spec.input.reader.epochs = 100;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < GetParam(); ++rank) {
      threads.emplace_back([&, rank, spec]() mutable {
        const auto replicas = cluster.New(rank);
        spec.replicas = replicas.get();
        const auto result = Train(StrCat("model-", runs_), spec, yaml);
        EXPECT_TRUE(result.ok()) << result.status();
      });
    }
    threads.clear();
    ++runs_;
    return cluster.traffic();
  }

  void ExpectMessagesOfAStep(const std::string& yaml, int64_t expected) {
    const std::vector<Traffic> few = Measure(yaml, 2), more = Measure(yaml, 6);
    for (size_t rank = 0; rank < few.size(); ++rank) {
      EXPECT_EQ(more[rank].messages - few[rank].messages, 4 * expected) << "rank " << rank;
    }
  }

  int runs_ = 0;
};

// Gathered are the dense gradients with a proposal and the position.
TEST_P(StepCostTest, AStepOfASmallModelGathersOnce) {
  ExpectMessagesOfAStep(Spec(8), model().rounds());
}

TEST_P(StepCostTest, AStepOfALargeModelReducesItsGradients) {
  ExpectMessagesOfAStep(Spec(10'000), model().rounds() + 2 * model().halvings());
}

// As many as before ranks passed things on, each sent to each other replica.
TEST(LargeGroupCostTest, ThirtyTwoReplicasSendAQuarterOfTheMessagesOfDirectExchanges) {
  const collective::CostModel model = {.ranks = 32};
  const int64_t direct = model.ranks - 1;
  EXPECT_LE(4 * model.rounds(), 4 * direct);
  EXPECT_LE(4 * (model.rounds() + 2 * model.halvings()), 5 * direct);
  EXPECT_LE(4 * (2 * model.rounds() + model.halvings()), 4 * direct);  // with tables
}

// A table of three rows of 16 floats below a dense layer.
constexpr int kTableRows = 3, kTableCols = 16, kTableUnits = 8;
constexpr std::string_view kTableSpec = R"(
inputs: {color: string, y: int}
label: y
columns:
  color: {vocabulary: color, words: [red, green, blue]}
  e: {embedding: color, dimension: 16}
model: {type: dnn, dnn: {columns: [e], hidden_units: [8],
                         optimizer: {adagrad: {learning_rate: 0.05}}}}
train: {batch_size: 16, epochs: 100, seed: 5}
)";

TEST_P(StepCostTest, AStepWithATableSendsItsRows) {
  constexpr int64_t kSteps = 4;
  // The dense layer, the output layer and two losses.
  constexpr int64_t kDense = ((kTableCols + 1) * kTableUnits + kTableUnits + 1 + 2) * 4;
  constexpr int64_t kRows = kTableRows * (1 + kTableCols) * 4;  // their indices and gradients
  constexpr int64_t kProposal = sizeof(Proposal);
  constexpr int64_t kCounts = 4 + 4;  // of the rows, and of the position's text
  constexpr int64_t kShortPosition = 60, kLongPosition = 200, kMostFraming = 64;
  // Every share of these records has all three rows; only the last batch of an epoch may lack one.
  std::string csv = "color,y\n";
  for (int i = 0; i < 300; ++i) {
    csv += StrCat(i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue", ",", i % 2, "\n");
  }
  Write("train.csv", csv);
  const std::string yaml(kTableSpec);
  const std::vector<Traffic> few = Measure(yaml, 2), more = Measure(yaml, 2 + kSteps);
  const int64_t messages =
      model().is_large() ? 2 * model().rounds() + model().halvings() : model().rounds();
  int64_t all = 0;
  for (size_t rank = 0; rank < few.size(); ++rank) {
    EXPECT_EQ(more[rank].messages - few[rank].messages, kSteps * messages);
    all += more[rank].bytes - few[rank].bytes;
  }
  // Every replica's rows go to each other one. Or each row goes from replica to replica until it is
  // summed, and then its sum to each.
  const int64_t rows = model().is_large() ? 2 * kRows * (n() - 1) : n() * kRows * (n() - 1);
  const int64_t dense =
      model().is_large() ? model().gathered(kDense + sizeof(uint64_t)) : (n() - 1) * kDense;
  const auto get_cost = [&](int64_t position) {
    return n() * dense + rows + n() * (n() - 1) * (kCounts + kProposal + position);
  };
  EXPECT_GT(all, kSteps * get_cost(kShortPosition));
  EXPECT_LT(all, kSteps * (get_cost(kLongPosition) + n() * messages * kMostFraming));
}

// A model without a table sends the same except for rows.
TEST_P(StepCostTest, TheBytesOfAStepDependOnTheModel) {
  constexpr int64_t kSteps = 4;
  constexpr int kHidden = 8;
  constexpr int64_t kDense = (2 * kHidden + kHidden + 1 + 2) * 4;
  const auto get_cost = [this](int64_t position) {
    const int64_t size = model().is_large() ? sizeof(uint64_t) : 0;
    return model().gathered(kDense + size +
                            static_cast<int64_t>(sizeof(uint32_t) + sizeof(Proposal)) + position);
  };
  const std::vector<Traffic> few = Measure(Spec(kHidden), 2);
  const std::vector<Traffic> more = Measure(Spec(kHidden), 2 + kSteps);
  for (size_t rank = 0; rank < few.size(); ++rank) {
    const int64_t bytes = more[rank].bytes - few[rank].bytes;
    EXPECT_GT(bytes, kSteps * get_cost(60)) << "rank " << rank;
    EXPECT_LT(bytes, kSteps * get_cost(200)) << "rank " << rank;
  }
}

// The chief's state goes along a chain of all replicas, each of which forwards it once.
TEST_P(StepCostTest, AJoinForwardsTheStateOnce) {
  constexpr int64_t kUnits = 30'000;
  // Kernel, bias, output kernel and its bias, each with an accumulator.
  const int64_t state = 2 * (3 * kUnits + 1) * static_cast<int64_t>(sizeof(float));
  const std::vector<Traffic> few = Measure(Spec(kUnits), 2), more = Measure(Spec(kUnits), 4);
  for (size_t rank = 0; rank < few.size(); ++rank) {
    const int64_t steps = more[rank].bytes - few[rank].bytes;
    const int64_t joined = few[rank].bytes - steps;
    const int64_t forwarded = rank + 1 < few.size() ? state : 0;
    EXPECT_GE(joined, forwarded) << "rank " << rank;
    EXPECT_LT(joined, forwarded + 20'000 + 200 * n()) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, StepCostTest, testing::Values(2, 8, 32));

// Each member gets the whole view, so that the host sends n times its n members.
TEST(ViewCostTest, AViewHasLessThan200BytesPerMember) {
  membership::Message message;
  for (int i = 0; i < 1000; ++i) {
    message.view.emplace(message.view.value_or(membership::View{.generation = 1'000'001}));
    message.view->members.push_back({.id = {{job::TaskType::kWorker, i}, 1'700'000'000'000},
                                     .address = "tcp://job-worker-999.namespace.svc:2222",
                                     .step = 100'000'000,
                                     .state_generation = 1'000'001});
  }
  message.view->replicas = 1000;
  const size_t bytes = membership::Print(message).size();
  EXPECT_LT(bytes, 200'000u);
  EXPECT_GT(bytes, 100'000u) << "docs/scale.md says that it is about 170 bytes a member";
}

}  // namespace
}  // namespace muster::train
