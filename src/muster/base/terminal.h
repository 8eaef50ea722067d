// What the terminal of a file descriptor can show. A terminal named "dumb" (TERM) cannot move
// its cursor and counts as a file; NO_COLOR, set to anything but "", forbids colours
// (no-color.org).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Whether lines that were written to `fd` can be written again: a terminal, and not a dumb one.
bool CanRewrite(int fd);
// Whether colours may be written to `fd`.
bool WantsColor(int fd);

// Columns of the terminal of `fd`; 80 where that is unknown. At least 20.
size_t TerminalWidth(int fd);

// Its lines; 24 where that is unknown. At least 5.
size_t TerminalHeight(int fd);

// Columns that `text` in UTF-8 takes: two for a character of East Asian width or an emoji, none for
// one that combines with the character before it. Escape sequences must not be in it.
size_t CountColumns(std::string_view text);
// `text` with as many spaces after it as give `columns` columns.
std::string PadColumns(std::string_view text, size_t columns);
// `text` cut to at most `columns` columns; one that was cut ends with "...".
std::string FitColumns(std::string_view text, size_t columns);

// `text` with escapes (\n, \t, \x1b) for its control characters, so that it stays on its line.
std::string EscapeControls(std::string_view text);

}  // namespace muster
