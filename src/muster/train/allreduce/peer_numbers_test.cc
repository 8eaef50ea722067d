// A peer sends impossible numbers: the error names the peer, and nothing else happens.
#include <limits>
#include <thread>

#include "muster/collective/collectives.h"
#include "muster/collective/test_ranks.h"
#include "muster/train/allreduce/replica_state.h"
#include "muster/train/allreduce/replicas.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using collective::Group;
using collective::TestRanks;
using testing::AllOf;
using testing::HasSubstr;

class ReplicaStateTest : public TrainingTest {
 protected:
  struct Replica {
    explicit Replica(const TrainingTest&, io::FileSystem& files, const Clock& clock,
                     uint64_t seed = 5, std::string_view yaml = kTestSpec)
        : progress(ProgressStyle::kNone, 2, clock) {
      const auto spec = model::ParseModelSpec(files, yaml, "spec.yaml");
      model = model::BuildModel(*spec, {}).value();
      variables = Variables::Create(model, seed, /*with_slots=*/true).value();
    }
    RunConfig config;
    model::Model model;
    std::unique_ptr<Variables> variables;
    Progress progress;
  };
  Session MakeSession(Replica& replica) {
    return {.files = *files_,
            .clock = clock_,
            .config = replica.config,
            .model = replica.model,
            .variables = *replica.variables,
            .events = nullptr,
            .progress = replica.progress};
  }

  // Receives a state with this header and these bytes of positions; returns the receiver's status.
  absl::Status Receive(const std::function<void(StateHeader*)>& change, std::string positions) {
    Replica replica(*this, *files_, clock_);
    Session session = MakeSession(replica);
    session.step = 3;
    StateHeader header = {.step = 7, .ranks = 1, .positions = positions.size()};
    for (const auto& tensor : session.variables.Tensors(/*with_slots=*/true)) {
      header.bytes += tensor.bytes.size();
    }
    change(&header);
    bool overwritten = false;
    TestRanks ranks(2);
    const auto results = ranks.Run([&](Group& group) {
      if (group.rank() == 1) {
        return ShareState(group, {.donors = {0}, .receivers = {1}}, 7, session, &overwritten)
            .status();
      }
      MUSTER_RETURN_IF_ERROR(group.Send(1, std::as_bytes(std::span(&header, 1))));
      // The group may already have ended, by the receiver's error.
      group.Send(1, std::as_bytes(std::span(positions))).IgnoreError();
      return absl::OkStatus();
    });
    EXPECT_FALSE(overwritten);
    EXPECT_EQ(session.step, 3);
    return results[1];
  }
  void ExpectRefused(const std::function<void(StateHeader*)>& change, const std::string& words,
                     std::string positions = std::string("\2\0\0\0ab", 6)) {
    const absl::Status status = Receive(change, std::move(positions));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(ToStd(status.message()), AllOf(testing::StartsWith("rank 0"), HasSubstr(words)));
  }
};

TEST_F(ReplicaStateTest, AStateOfAnotherStepThanAnnouncedIsRefused) {
  ExpectRefused([](auto* header) { header->step = 8; }, "step 8, but announced step 7");
  ExpectRefused([](auto* header) { header->step = -1; }, "step -1");
}

// This includes receivers that get the state from another receiver.
TEST_F(ReplicaStateTest, AllReceiversGetTheOwnersState) {
  const StateTransfer transfer = {.donors = {2}, .receivers = {0, 3}};
  TestRanks ranks(4);
  std::vector<std::string> weights(4);
  const auto results = ranks.Run([&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    Replica replica(*this, *files_, clock_, /*seed=*/rank);
    Session session = MakeSession(replica);
    session.step = group.rank() == 2 ? 7 : 3;
    session.data.positions = {group.rank() == 2 ? "here" : "there", "end"};
    bool overwritten = false;
    MUSTER_ASSIGN_OR_RETURN(const bool received,
                            ShareState(group, transfer, 7, session, &overwritten));
    EXPECT_EQ(received, group.rank() == 0 || group.rank() == 3);
    EXPECT_EQ(overwritten, received);
    EXPECT_EQ(session.step, group.rank() == 1 ? 3 : 7);
    EXPECT_EQ(session.data.positions[0], group.rank() == 1 ? "there" : "here");
    for (const auto& tensor : session.variables.Tensors(/*with_slots=*/true)) {
      weights[rank].append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    return collective::Barrier(group);
  });
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(weights[0], weights[2]);
  EXPECT_EQ(weights[3], weights[2]);
  EXPECT_NE(weights[1], weights[2]);
}

TEST_F(ReplicaStateTest, SeveralDonorsSendALargeState) {
  const StateTransfer transfer = {.donors = {1, 2}, .receivers = {0, 3}};
  std::string yaml(kTestSpec);
  const std::string_view units = "hidden_units: [8]";
  yaml.replace(yaml.find(units), units.size(), "hidden_units: [100000]");
  TestRanks ranks(4);
  std::vector<std::string> weights(4);
  const auto results = ranks.Run([&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const bool sends = rank == 1 || rank == 2;
    Replica replica(*this, *files_, clock_, /*seed=*/sends ? 7 : rank, yaml);
    Session session = MakeSession(replica);
    session.step = sends ? 7 : 3;
    session.data.positions = {sends ? "here" : "there"};
    bool overwritten = false;
    MUSTER_RETURN_IF_ERROR(ShareState(group, transfer, 7, session, &overwritten).status());
    EXPECT_EQ(overwritten, !sends);
    EXPECT_EQ(session.step, 7);
    EXPECT_EQ(session.data.positions[0], "here");
    for (const auto& tensor : session.variables.Tensors(/*with_slots=*/true)) {
      weights[rank].append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    return collective::Barrier(group);
  });
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  for (const size_t rank : {0, 2, 3}) EXPECT_TRUE(weights[rank] == weights[1]) << rank;
  // Small variables come from the first donor alone.
  const auto bytes = static_cast<double>(weights[1].size());
  EXPECT_GT(bytes, 4e6);
  EXPECT_NEAR(static_cast<double>(ranks.traffic(1).bytes), bytes / 2, bytes / 5);
  EXPECT_NEAR(static_cast<double>(ranks.traffic(2).bytes), bytes / 2, bytes / 5);
  EXPECT_NEAR(static_cast<double>(ranks.traffic(0).bytes), bytes, bytes / 100);
}

TEST_F(ReplicaStateTest, ImpossibleLengthsAreRefused) {
  ExpectRefused([](auto* header) { ++header->bytes; }, "but this replica's model has");
  ExpectRefused([](auto* header) { header->positions = uint64_t{1} << 40; }, "positions");
  ExpectRefused([](auto* header) { header->ranks = ~uint64_t{0}; }, "positions");
  ExpectRefused([](auto* header) { header->ranks = 2; }, "a position is cut off");
  ExpectRefused([](auto* header) { header->ranks = 0; }, "bytes after its positions");
  ExpectRefused([](auto*) {}, "a position is cut off", std::string("\3\0\0\0ab", 6));
}

TEST_F(ReplicaStateTest, ImpossibleCountsAreRefused) {
  ExpectRefused([](auto* header) { header->records.trained = -1; }, "trained=-1");
  ExpectRefused([](auto* header) { header->has_records = 2; }, "counted records");
}

// The replicas as a worker sees them whose chief sends a given proposal.
class OddProposal : public Replicas {
 public:
  // rows, stop, seconds (a float), dropped, dropped at the end, bad records, next rows
  using Numbers = std::array<int32_t, 7>;
  explicit OddProposal(const Numbers& proposal) : proposal_(proposal), ranks_(2) {}
  bool is_chief() const override { return false; }
  absl::StatusOr<ReplicaGeneration> Join(const StateId&, const absl::Status& why) override {
    if (!why.ok()) return why;
    chief_ = std::jthread([this, group = ranks_.ReleaseGroup(0)] {
      EXPECT_TRUE(collective::Barrier(*group).ok());
      std::array<int32_t, 14> all{};
      EXPECT_TRUE(collective::AllGather(*group, std::as_bytes(std::span(proposal_)),
                                        std::as_writable_bytes(std::span(all)))
                      .ok());
      // The error that the chief gets.
      chief_status_ = collective::Barrier(*group);
    });
    return ReplicaGeneration{
        .generation = 1, .group = ranks_.ReleaseGroup(1), .states = {{.step = 0}, {.step = 0}}};
  }
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::Status chief_status() {
    chief_.join();
    return chief_status_;
  }

 private:
  const Numbers proposal_;
  TestRanks ranks_;
  absl::Status chief_status_;
  std::jthread chief_;
};

class ProposalTest : public TrainingTest,
                     public testing::WithParamInterface<OddProposal::Numbers> {};

TEST_P(ProposalTest, AnImpossibleProposalNamesItsReplica) {
  OddProposal replicas(GetParam());
  TrainSpec spec = Training();
  spec.replicas = &replicas;
  const absl::Status status = Train("model", spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(ToStd(status.message()), AllOf(HasSubstr("rank 0"), HasSubstr("proposes a step of")));
  EXPECT_EQ(replicas.chief_status().code(), absl::StatusCode::kAborted);
}

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
INSTANTIATE_TEST_SUITE_P(
    Proposals, ProposalTest,
    testing::Values(
        OddProposal::Numbers{-1, 0, 0, 0, 0, 0, 0}, OddProposal::Numbers{kMost, 0, 0, 0, 0, 0, 0},
        OddProposal::Numbers{16, 3, 0, 0, 0, 0, 0}, OddProposal::Numbers{16, -1, 0, 0, 0, 0, 0},
        OddProposal::Numbers{16, 0, 0x7fc00000, 0, 0, 0, 0},  // not a number
        OddProposal::Numbers{16, 0, -1, 0, 0, 0, 0},          // negative
        OddProposal::Numbers{16, 0, 0, -1, 0, 0, 0}, OddProposal::Numbers{16, 0, 0, kMost, 0, 0, 0},
        OddProposal::Numbers{16, 0, 0, 0, kMost, 0, 0}, OddProposal::Numbers{16, 0, 0, 0, 0, -1, 0},
        OddProposal::Numbers{16, 0, 0, 0, 0, kMost, 0}, OddProposal::Numbers{16, 0, 0, 0, 0, 0, -1},
        OddProposal::Numbers{16, 0, 0, 0, 0, 0, kMost}));

}  // namespace
}  // namespace muster::train
