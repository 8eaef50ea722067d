#include "muster/control/gang_wait.h"

#include <algorithm>

namespace muster::control {
namespace {

constexpr double kLongestWait = 1.5;        // of the wait that was set
constexpr double kLongestPause = 60;        // seconds, and at most the wait that was set
constexpr double kShortestPause = 1.0 / 6;  // of the longest one

}  // namespace

double GangWait::Draw(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_);
}

double GangWait::DrawPause() {
  const double longest = std::min(seconds_, kLongestPause);
  return Draw(longest * kShortestPause, longest);
}

std::optional<double> GangWait::Look(const GangLook& look, double now) {
  left_ = std::numeric_limits<double>::infinity();
  if (seconds_ <= 0 || look.missing.empty() || !look.is_held) {
    since_.reset();
    return std::nullopt;
  }
  if (!since_ || look.missing != missing_) {
    missing_ = look.missing;
    since_ = now;
    patience_ = Draw(seconds_, seconds_ * kLongestWait);
  }
  const double waited = std::min(now - *since_, look.still_seconds);
  left_ = patience_ - waited;
  if (left_ > 0) return std::nullopt;
  since_.reset();
  left_ = 0;
  return waited;
}

}  // namespace muster::control
