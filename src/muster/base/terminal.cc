#include "muster/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace muster {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kLeastWidth = 20;
constexpr size_t kUsualHeight = 24;
constexpr size_t kLeastHeight = 5;
constexpr std::string_view kCut = "...";

std::string_view GetVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

bool CanRewrite(int fd) { return isatty(fd) == 1 && GetVariable("TERM") != "dumb"; }

bool WantsColor(int fd) { return CanRewrite(fd) && GetVariable("NO_COLOR").empty(); }

size_t TerminalWidth(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return std::max<size_t>(kLeastWidth, size.ws_col);
}

size_t TerminalHeight(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kUsualHeight;
  return std::max<size_t>(kLeastHeight, size.ws_row);
}

size_t CountColumns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, BeginsCharacter));
}

std::string FitColumns(std::string_view text, size_t columns) {
  if (CountColumns(text) <= columns) return std::string(text);
  if (columns <= kCut.size()) return std::string(kCut.substr(0, columns));
  size_t end = 0;
  for (size_t kept = 0; end < text.size(); ++end) {
    if (BeginsCharacter(text[end]) && kept++ == columns - kCut.size()) break;
  }
  return std::string(text.substr(0, end)).append(kCut);
}

}  // namespace muster
