// ClipSink: clips gradients on their way to the sink that applies them.
//
// The gradients are those of the minimised loss, including regularisation. Norms are taken over the
// summed gradient: a row of a table counts once, with the sum of its appearances. Keras's clipnorm
// and global_clipnorm see the same when a lookup makes ids unique, as feature columns do. In a
// tf.IndexedSlices that names a row twice, Keras counts each slice by itself: if `next` wants
// squares, the norms here do so too. Gradients of tables that arrive already cut by value are
// forwarded unchanged (optim::ClipSpec::tables_are_cut).
//
// If several replicas train one model, the ClipSink comes after the reduction: it must see whole
// gradients, the same on every replica.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/engine/engine.h"
#include "muster/optim/clip.h"
#include "muster/optim/row_layout.h"

namespace muster::train {

// A gradient that is clipped by value or by norm is forwarded at once; for the global norm all
// gradients are kept (rows as rows) until Finish. Moving statistics are forwarded unchanged. Memory
// is kept between steps. One owner thread; `next` must outlive the sink.
class ClipSink : public engine::GradientSink {
 public:
  ClipSink(const optim::ClipSpec& spec, engine::GradientSink& next) : spec_(spec), next_(next) {}

  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override { return next_.WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return next_.WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override;

  // Call after each Engine::Step: gives `next` the gradients that are still kept, in the order in
  // which they arrived.
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
  size_t count_ = 0;  // entries of kept_ in use
};

}  // namespace muster::train
