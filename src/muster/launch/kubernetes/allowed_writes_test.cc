#include "muster/launch/kubernetes/allowed_writes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Status kForbidden = absl::PermissionDeniedError(
    "POST /api/v1/namespaces/team/pods: pods is forbidden: User \"u\" cannot create resource "
    "\"pods\"");

// A server that answers each change in the same way, and its clock.
class AllowedWritesTest : public ::testing::Test, KubeCalls, Clock {
 protected:
  void TryAt(double seconds, const absl::Status& answer, const std::string& target = "/x/pods") {
    now_ = seconds;
    answer_ = answer;
    (void)writes_.Create(target, Json::object());
  }

  absl::StatusOr<Json> Answer() const {
    if (!answer_.ok()) return answer_;
    return Json::object();
  }
  absl::StatusOr<Json> Get(const std::string&) override { return Answer(); }
  absl::StatusOr<Json> Create(const std::string&, const Json&, std::vector<std::string>*) override {
    return Answer();
  }
  absl::StatusOr<Json> Replace(const std::string&, const Json&) override { return Answer(); }
  absl::StatusOr<Json> MergePatch(const std::string&, const Json&) override { return Answer(); }
  absl::StatusOr<Json> StrategicPatch(const std::string&, const Json&) override { return Answer(); }
  absl::Status Delete(const std::string&, const std::string&, int64_t) override { return answer_; }
  double WallSeconds() const override { return 1.7e9 + now_; }
  int64_t MonotonicNanos() const override { return static_cast<int64_t>(now_ * 1e9); }

  double now_ = 0;
  absl::Status answer_;
  AllowedWrites writes_{*this, *this};
};

TEST_F(AllowedWritesTest, ARightThatIsMissingForAMinuteIsAProblem) {
  for (const double at : {10.0, 30.0, 60.0}) {
    TryAt(at, kForbidden);
    EXPECT_THAT(writes_.problem(), IsEmpty());
  }
  TryAt(75, kForbidden);
  EXPECT_THAT(writes_.problem(), HasSubstr("no change has been allowed for 65 s"));
  EXPECT_THAT(writes_.problem(), HasSubstr("cannot create resource \"pods\""));
  TryAt(80, absl::UnavailableError("the server is away"));
  EXPECT_THAT(writes_.problem(), HasSubstr("for 70 s"));
  TryAt(81, absl::OkStatus());
  EXPECT_THAT(writes_.problem(), IsEmpty());
}

TEST_F(AllowedWritesTest, OneOtherChangeIsEnough) {
  TryAt(0, kForbidden);
  TryAt(50, absl::AbortedError("the object has been modified"));  // which is allowed
  TryAt(100, kForbidden);
  TryAt(120, kForbidden);
  EXPECT_THAT(writes_.problem(), IsEmpty());
  TryAt(170, kForbidden);
  EXPECT_FALSE(writes_.problem().empty());
  // Nobody tries any more: the job is gone.
  now_ = 400;
  EXPECT_THAT(writes_.problem(), IsEmpty());
}

TEST_F(AllowedWritesTest, QuotasAndEventsDoNotCount) {
  const absl::Status quota =
      absl::PermissionDeniedError("pods \"j-worker-0\" is forbidden: exceeded quota: small");
  for (const double at : {0.0, 100.0}) {
    TryAt(at, quota);
    TryAt(at + 1, kForbidden, "/api/v1/namespaces/team/events");
  }
  EXPECT_THAT(writes_.problem(), IsEmpty());
}

}  // namespace
}  // namespace muster::launch::kubernetes
