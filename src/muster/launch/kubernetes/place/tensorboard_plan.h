// A TensorBoard of a job in its cluster, as a Deployment and a Service that the job owns. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

inline constexpr char kTensorBoardImage[] = "tensorflow/tensorflow:2.15.0";
inline constexpr std::string_view kTensorBoardLabel = "muster/tensorboard";  // its value: the job
inline constexpr std::string_view kTensorBoardIdLabel = "muster/tensorboard-id";

struct TensorBoardOptions {
  std::string image = kTensorBoardImage;    // has TensorBoard for its python3
  std::string model_dir = {};               // "": the job's, see FindModelDir()
  std::vector<std::string> arguments = {};  // TensorBoard's own
  std::string id = {};  // tells it from the job's other TensorBoards, as in "3fa01"
};

struct TensorBoardPlan {
  std::string name = {};  // of both objects: "JOB-tensorboard-ID"
  std::string id = {};
  std::string model_dir = {};
  Json deployment = {}, service = {};
};

// The model folder of a TFJob object: the annotation muster/modelDir, else the flag --model-dir,
// --model_dir, --log_dir or --logdir of a container's command, or the second argument of `muster
// worker`. "": it is not known.
std::string FindModelDir(const Json& job);

// Its pod has what the job's pods have for their volumes and nodes: of these the one with the model
// folder, security context, pull secrets, service account, node selector and tolerations. The
// volume is mounted to be read only. A folder with a scheme ("gs://...") needs no volume.
// FAILED_PRECONDITION if the folder is not known or lies on no volume that another pod can have.
absl::StatusOr<TensorBoardPlan> PlanTensorBoard(const Json& job, const TensorBoardOptions& options);

// The target below which an API server answers for the Service of that name.
std::string GetProxyTarget(std::string_view name_space, std::string_view service);

// Why a TensorBoard that is not there yet does not start, from its Deployment and its pods; "": it
// is on its way.
std::string FindStartProblem(const Json& deployment, const std::vector<Json>& pods);

}  // namespace muster::launch::kubernetes
