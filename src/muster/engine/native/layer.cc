#include "muster/engine/native/layer.h"

#include "muster/math/vector.h"

namespace muster::engine::native {

void Layer::Reserve(const Step&, int) {}
void Layer::Pack(const Step&, Worker&) {}
void Layer::Reduce(const Step&, Worker&) {}
void Layer::Emit(const Step&, GradientSink&) {}

void GradientShares::Reserve(int workers) {
  stride_ = (elements_ + 15) / 16 * 16;
  data_ = memory_.Reserve(static_cast<size_t>(stride_ * workers));
}

void GradientShares::Reduce(const Worker& worker) {
  const int64_t first = worker.first_of(elements_), last = worker.last_of(elements_);
  for (int other = 1; other < worker.count; ++other) {
    math::AddTo(share(other) + first, data_ + first, static_cast<size_t>(last - first));
  }
}

}  // namespace muster::engine::native
