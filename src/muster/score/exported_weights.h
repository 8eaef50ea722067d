// Reads the weights of an export (a SavedModel that an exporter or `muster export` has made), so
// that evaluation and prediction accept the export's folder as a checkpoint of the same model.
#pragma once

#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::score {

// Whether `checkpoint` is the folder of a SavedModel.
bool IsExport(io::FileSystem& files, const std::string& checkpoint);

// The prefix of the bundle with the weights: the bundle inside an export, else `checkpoint` itself.
std::string FindBundle(io::FileSystem& files, const std::string& checkpoint);

// Fills `tensors`, which belong to a model of `spec`, from the export in `folder`. The result's
// `step` is the step of the weights, 0 if an export by an older version does not contain it.
// FAILED_PRECONDITION for an export of another model; UNIMPLEMENTED for a model with tables that
// grow, since an export has their keys in its graph.
absl::StatusOr<checkpoint::Restored> RestoreExport(io::FileSystem& files,
                                                   const model::ModelSpec& spec,
                                                   const std::string& folder,
                                                   std::span<const checkpoint::Tensor> tensors);

}  // namespace muster::score
