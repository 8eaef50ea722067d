// ClipSink: clips gradients on their way to the sink that applies them.
//
// The gradients are those of what is minimised, regularisation included. Norms are of the summed
// gradient: a row of a table counts once, with the sum of its appearances. That is what Keras's
// clipnorm and global_clipnorm see when a lookup makes ids unique, as feature columns do. Of a
// tf.IndexedSlices that names a row twice they take the slices as they are: where `next` wants
// squares, so do these. Tables that come cut by value pass (optim::ClipSpec).
//
// Where several replicas train one model, this stands behind the reduction: it must see whole
// gradients, the same on every replica.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/engine/engine.h"
#include "muster/optim/clip.h"
#include "muster/optim/row_layout.h"

namespace muster::train {

// By value and by norm a gradient goes on at once; by global norm all are kept (rows as rows) until
// Finish. Memory is kept between steps. Moving statistics pass. One owner thread; `next` must
// outlive it.
class ClipSink : public engine::GradientSink {
 public:
  ClipSink(const optim::ClipSpec& spec, engine::GradientSink& next) : spec_(spec), next_(next) {}

  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override { return next_.WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return next_.WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override;

  // After each Engine::Step: gives `next` what is still kept, in the order in which it came.
  void Finish();

 private:
  struct Kept {
    int variable = 0;
    bool has_rows = false;
    std::vector<int32_t> rows;
    optim::RowLayout layout;
    std::vector<float> gradient;
  };

  Kept& Keep(int variable, std::span<const float> gradient);
  void Give(const Kept& kept);
  void ClipAlone(Kept& kept) const;
  void ScaleToNorm(double norm, Kept& kept) const;

  const optim::ClipSpec spec_;
  engine::GradientSink& next_;
  std::vector<Kept> kept_;
  size_t count_ = 0;  // of kept_ in use
};

}  // namespace muster::train
