// Clips gradients as tf.clip_by_value, clip_by_norm and clip_by_global_norm do.
//
// Norms are taken over a gradient's entries. An entry is one appearance of an id if the table's
// gradient comes with squares (row_layout.h), and one row for other tables.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::optim {

struct ClipSpec {
  enum class Kind {
    kNone,
    kValue,      // each element to [-limit, limit]
    kNorm,       // each variable's gradient g to g * limit / max(|g|, limit)
    kGlobalNorm  // all gradients by limit / max(norm over all of them, limit)
  } kind = Kind::kNone;
  double limit = 0;  // over 0
  // kValue: the gradients of tables arrive already cut, entry by entry, and are left unchanged.
  // This is so for exported Keras models: their engine cuts the entries before it sums them.
  bool tables_are_cut = false;

  // Whether clipping needs more than one element at a time.
  bool by_norm() const { return kind == Kind::kNorm || kind == Kind::kGlobalNorm; }
  friend bool operator==(const ClipSpec&, const ClipSpec&) = default;
};

// "value", "norm", "global_norm": the words of a model file; "" for none.
inline std::string_view ClipName(ClipSpec::Kind kind) {
  constexpr std::string_view kNames[] = {"", "value", "norm", "global_norm"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace muster::optim
