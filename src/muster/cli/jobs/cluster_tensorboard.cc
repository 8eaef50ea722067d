#include "muster/cli/jobs/cluster_tensorboard.h"

#include <poll.h>

#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/cli/common/interrupt.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/launch/kubernetes/place/cluster_tensorboard.h"
#include "muster/launch/kubernetes/place/kubernetes_place.h"

namespace muster::cli {
namespace {

using launch::kubernetes::ClusterTensorBoard;

constexpr int kLookMillis = 500;
constexpr int kLooksBetweenProblems = 4;
constexpr int kLooksBetweenJobs = 10;

// Each viewer has a TensorBoard of its own: the end of one leaves the others.
std::string MakeId() { return absl::StrFormat("%05x", std::random_device()() % 0x100000); }

// Waits a moment; false once the user has asked to stop.
bool Pause() {
  if (!InterruptScope::requested()) poll(nullptr, 0, kLookMillis);
  return !InterruptScope::requested();
}

// Waits until TensorBoard answers; false if the user has asked to stop before.
absl::StatusOr<bool> WaitUntilReady(ClusterTensorBoard& board) {
  std::string said;
  for (int look = 1; !InterruptScope::requested(); ++look) {
    MUSTER_ASSIGN_OR_RETURN(const bool ready, board.IsReady());
    if (ready) return true;
    if (look % kLooksBetweenProblems == 0) {
      MUSTER_ASSIGN_OR_RETURN(std::string problem, board.FindProblem());
      if (!problem.empty() && problem != said) {
        SayOfJob(StrCat("TensorBoard does not start: ", problem));
        said = std::move(problem);
      }
    }
    if (!Pause()) break;
  }
  return false;
}

absl::Status Show(ClusterTensorBoard& board, const std::string& job, int port) {
  auto forwarder = board.Forward(static_cast<uint16_t>(port));
  if (absl::IsAlreadyExists(forwarder.status())) {
    return Annotate(forwarder.status(), "give another --port, or 0 for a free one");
  }
  MUSTER_RETURN_IF_ERROR(forwarder.status());
  MUSTER_RETURN_IF_ERROR(board.Make());
  SayOfJob(StrCat("TensorBoard of ", board.plan().model_dir, " starts in the cluster as ",
                  board.plan().name, "; Ctrl-C removes it"));
  MUSTER_ASSIGN_OR_RETURN(const bool ready, WaitUntilReady(board));
  if (!ready) return absl::OkStatus();
  std::printf("%s/\n", (*forwarder)->url().c_str());
  std::fflush(stdout);
  for (int look = 1; Pause(); ++look) {
    if (look % kLooksBetweenJobs != 0) continue;
    const auto there = board.HasJob();  // an API server that is away may come again
    if (!there.ok() || *there) continue;
    SayOfJob(StrCat("the job ", job, " was removed, and its TensorBoard with it"));
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShowInCluster(const ClusterJob& job, const ClusterTensorBoardFlags& flags) {
  launch::kubernetes::KubernetesPlace place(job.cluster, job.name, job.uid);
  MUSTER_ASSIGN_OR_RETURN(const formats::Json object, place.GetJob());
  launch::kubernetes::TensorBoardOptions options = {
      .model_dir = flags.model_dir, .arguments = flags.arguments, .id = MakeId()};
  if (!flags.image.empty()) options.image = flags.image;
  MUSTER_ASSIGN_OR_RETURN(auto plan, launch::kubernetes::PlanTensorBoard(object, options));
  const InterruptScope interrupt;
  ClusterTensorBoard board(job.cluster, object, std::move(plan));
  const absl::Status shown = Show(board, job.name, flags.port);
  const absl::Status removed = board.Remove();
  return shown.ok() ? removed : shown;
}

}  // namespace muster::cli
