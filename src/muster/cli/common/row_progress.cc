#include "muster/cli/common/row_progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "muster/base/number_text.h"
#include "muster/base/strings.h"
#include "muster/base/terminal.h"

namespace muster::cli {
namespace {

constexpr int64_t kFirst = 1'000'000'000;
constexpr int64_t kTerminalInterval = 100'000'000;
constexpr int64_t kLogInterval = 5'000'000'000;
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

RowProgress::RowProgress(std::string verb, std::string things, bool quiet)
    : verb_(std::move(verb)),
      things_(std::move(things)),
      rewrites_(CanRewrite(STDERR_FILENO)),
      quiet_(quiet),
      start_(clock_.MonotonicNanos()),
      next_(start_ + (rewrites_ ? kFirst : kLogInterval)) {}

RowProgress::~RowProgress() {
  if (is_open_) std::fputs(kEraseLine, stderr);
}

void RowProgress::Update(uint64_t done, uint64_t all) {
  if (quiet_ || clock_.MonotonicNanos() < next_) return;
  const double rate = static_cast<double>(done) / seconds();
  Show(StrCat(verb_, "  ", GroupDigits(done), all > 0 ? StrCat("/", GroupDigits(all)) : "", " ",
              things_, "  ", FormatCount(rate), " ", things_, "/s"));
}

void RowProgress::Say(const std::string& text) {
  if (!quiet_ && rewrites_) Show(StrCat(verb_, "  ", text));
}

double RowProgress::seconds() const {
  return static_cast<double>(clock_.MonotonicNanos() - start_ + 1) * 1e-9;
}

void RowProgress::Show(const std::string& text) {
  next_ = clock_.MonotonicNanos() + (rewrites_ ? kTerminalInterval : kLogInterval);
  if (!rewrites_) {
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  is_open_ = true;
  std::fprintf(stderr, "%s%s", kEraseLine,
               FitColumns(text, TerminalWidth(STDERR_FILENO) - 1).c_str());
}

}  // namespace muster::cli
