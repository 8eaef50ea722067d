// ClusterTensorBoard: the TensorBoard of a job, which runs in the job's cluster, at a port of this
// machine. A browser's requests go through the API server's proxy of Services, with the rights of
// the kubeconfig.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/launch/kubernetes/place/cluster.h"
#include "muster/launch/kubernetes/place/tensorboard_plan.h"
#include "muster/net/http/forwarder.h"

namespace muster::launch::kubernetes {

// One owner thread.
class ClusterTensorBoard {
 public:
  // `job`: as the API server has it.
  ClusterTensorBoard(Cluster cluster, Json job, TensorBoardPlan plan)
      : cluster_(std::move(cluster)), job_(std::move(job)), plan_(std::move(plan)) {}

  // Makes the Deployment and the Service. What an earlier call has made, whose answer was lost, is
  // taken over. FAILED_PRECONDITION if something of that name is not the job's.
  absl::Status Make();

  // Whether TensorBoard answers.
  absl::StatusOr<bool> IsReady();
  // Why it does not start, as far as is known.
  absl::StatusOr<std::string> FindProblem();
  // Whether the job is still there.
  absl::StatusOr<bool> HasJob();

  // Lets browsers of this machine reach it. ALREADY_EXISTS if the port is taken.
  absl::StatusOr<std::unique_ptr<net::HttpForwarder>> Forward(uint16_t port);

  // Removes both objects, and with them the pod.
  absl::Status Remove();

  const TensorBoardPlan& plan() const { return plan_; }

 private:
  absl::StatusOr<Json> MakeObject(const KubeKind& kind, const Json& object);

  Cluster cluster_;
  const Json job_;
  const TensorBoardPlan plan_;
};

}  // namespace muster::launch::kubernetes
