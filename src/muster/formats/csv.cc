#include "muster/formats/csv.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

#include "muster/base/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster::formats {

absl::Status CheckCsvOptions(CsvOptions options) {
  const char d = options.delimiter;
  if (d != '"' && d != options.quote && d != '\r' && d != '\n' && d != '\0') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("the CSV delimiter cannot be '",
                                           absl::CEscape(absl::string_view(&d, 1)),
                                           "': use one such as ',', ';', '|' or a tab"));
}

namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

size_t CsvRowScanner::Find(std::string_view text) {
  if (state_ == State::kNoQuoteYet) {
    const std::string_view fresh = text.substr(seen_);
    const size_t line_end = fresh.find('\n');
    if (quote_char_ == '\0' ||
        fresh.substr(0, line_end).find(quote_char_) == std::string_view::npos) {
      if (line_end == std::string_view::npos) {
        seen_ = text.size();
        return kMore;
      }
      const size_t size = seen_ + line_end + 1;
      seen_ = 0;
      return size;
    }
    state_ = State::kCellStart;
    seen_ = 0;
  }
  const size_t size = FindQuoted(text);
  if (size != kMore) {
    state_ = State::kNoQuoteYet;
    seen_ = 0;
  }
  return size;
}

size_t CsvRowScanner::FindQuoted(std::string_view text) {
  while (seen_ < text.size()) {
    switch (state_) {
      case State::kNoQuoteYet:
      case State::kCellStart:
        if (text[seen_] == quote_char_) {
          quote_ = seen_++;
          state_ = State::kQuoted;
        } else if (trim_ && IsBlank(text[seen_]) && text[seen_] != delimiter_) {
          ++seen_;
        } else {
          state_ = State::kPlain;
        }
        break;
      case State::kPlain:
        while (seen_ < text.size() && text[seen_] != delimiter_ && text[seen_] != '\n') ++seen_;
        if (seen_ == text.size()) break;
        if (text[seen_++] == '\n') return seen_;
        state_ = State::kCellStart;
        break;
      case State::kQuoted: {
        const size_t quote = text.find(quote_char_, seen_);
        seen_ = quote == std::string_view::npos ? text.size() : quote + 1;
        if (quote != std::string_view::npos) state_ = State::kAfterQuote;
        break;
      }
      case State::kAfterQuote:
        if (text[seen_] == quote_char_) {
          ++seen_;
          state_ = State::kQuoted;
        } else {
          state_ = State::kPlain;
        }
        break;
    }
  }
  return kMore;
}

std::string_view StripLineEnd(std::string_view row) {
  if (row.ends_with('\n')) row.remove_suffix(1);
  if (row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

namespace {

// Returns a mask of the 64 bytes that equal `c`; the first byte has the lowest bit.
uint64_t EqualMask(const char* bytes, char c) {
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8(c);
  uint64_t mask = 0;
  for (int part = 0; part < 4; ++part) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part));
    const auto equal = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(text, wanted)));
    mask |= uint64_t{equal} << (16 * part);
  }
  return mask;
#else
  uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= uint64_t{bytes[i] == c} << i;
  return mask;
#endif
}

void SplitUnquoted(std::string_view row, char delimiter, std::vector<std::string_view>* cells) {
  cells->clear();
  const char* const end = row.data() + row.size();
  const char* cell = row.data();
  for (const char* block = row.data(); block < end; block += 64) {
    uint64_t mask;
    if (end - block >= 64) {
      mask = EqualMask(block, delimiter);
    } else {
      char tail[64] = {};
      std::memcpy(tail, block, end - block);
      mask = EqualMask(tail, delimiter) & ((uint64_t{1} << (end - block)) - 1);
    }
    for (; mask != 0; mask &= mask - 1) {
      const char* const found = block + std::countr_zero(mask);
      cells->emplace_back(cell, found - cell);
      cell = found + 1;
    }
  }
  cells->emplace_back(cell, end - cell);
}

// Unquotes the cell that starts at row[*at] with a quote, and sets *at after its closing quote.
std::string_view ConsumeQuoted(std::string_view row, char quote_char, size_t* at,
                               std::string* scratch) {
  const size_t begin = *at + 1;
  size_t quote = row.find(quote_char, begin);
  if (quote == std::string_view::npos) quote = row.size();
  *at = quote + 1;
  if (*at >= row.size() || row[*at] != quote_char) return row.substr(begin, quote - begin);
  const size_t stored = scratch->size();
  size_t piece = begin;
  while (*at < row.size() && row[*at] == quote_char) {
    scratch->append(row, piece, *at - piece);  // includes one of the two quotes
    piece = *at + 1;
    quote = row.find(quote_char, piece);
    if (quote == std::string_view::npos) quote = row.size();
    *at = quote + 1;
  }
  scratch->append(row, piece, quote - piece);
  return std::string_view(*scratch).substr(stored);
}

// Returns the index of the first byte from `at` on that is not blank, or is the delimiter.
size_t SkipBlanks(std::string_view row, char delimiter, size_t at) {
  while (at < row.size() && IsBlank(row[at]) && row[at] != delimiter) ++at;
  return at;
}

absl::Status SplitQuoted(std::string_view row, CsvOptions options,
                         std::vector<std::string_view>* cells, std::string* scratch) {
  cells->clear();
  scratch->clear();
  scratch->reserve(row.size());  // cells point into it, so it must not move
  for (size_t at = 0;; ++at) {
    if (options.trim) at = SkipBlanks(row, options.delimiter, at);
    if (at < row.size() && row[at] == options.quote) {
      cells->push_back(ConsumeQuoted(row, options.quote, &at, scratch));
      if (options.trim) at = SkipBlanks(row, options.delimiter, at);
      if (at < row.size() && row[at] != options.delimiter) {
        return absl::InvalidArgumentError(StrCat(
            "cell ", cells->size(), " continues after its closing quote, with '",
            absl::CHexEscape(ToAbsl(row.substr(at, 20))), "' (write a quote inside quotes twice)"));
      }
    } else {
      const size_t end = std::min(row.find(options.delimiter, at), row.size());
      cells->push_back(row.substr(at, end - at));
      at = end;
    }
    if (at >= row.size()) return absl::OkStatus();
  }
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ConvertCsvRow(std::string_view row, EncodingErrors errors) {
  constexpr size_t kShownWrongBytes = 4;
  if (errors == EncodingErrors::kKeep || IsUtf8(row)) return std::string(row);
  if (errors == EncodingErrors::kReplace) return ReplaceNonUtf8(row);
  if (errors == EncodingErrors::kLatin1) return Latin1ToUtf8(row);
  return absl::InvalidArgumentError(
      StrCat("the row is not UTF-8, from '",
             absl::CHexEscape(ToAbsl(row.substr(Utf8PrefixSize(row), kShownWrongBytes))),
             "' on (it can be read with encoding errors keep, replace or latin1)"));
}

absl::Status SplitCsvRow(std::string_view row, CsvOptions options,
                         std::vector<std::string_view>* cells, std::string* scratch) {
  if (options.quote == '\0' || row.find(options.quote) == std::string_view::npos) {
    SplitUnquoted(row, options.delimiter, cells);
  } else {
    MUSTER_RETURN_IF_ERROR(SplitQuoted(row, options, cells, scratch));
  }
  if (options.trim) {
    for (std::string_view& cell : *cells) cell = TrimBlanks(cell);
  }
  return absl::OkStatus();
}

void AppendCsvCell(std::string_view cell, char delimiter, std::string* line) {
  const bool special = std::ranges::any_of(
      cell, [&](char c) { return c == delimiter || c == '"' || c == '\n' || c == '\r'; });
  if (!special) {
    line->append(cell);
    return;
  }
  line->push_back('"');
  for (const char c : cell) {
    if (c == '"') line->push_back('"');
    line->push_back(c);
  }
  line->push_back('"');
}

std::string DescribeOtherColumns(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& there) {
  std::vector<std::string> parts;
  const auto name = [&parts](const std::vector<std::string>& of,
                             const std::vector<std::string>& against, std::string_view what) {
    for (const std::string& column : of) {
      if (std::ranges::count(against, column) < std::ranges::count(of, column)) {
        std::string part = StrCat("column '", column, "' is ", what);
        if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
      }
    }
  };
  name(wanted, there, "missing");
  name(there, wanted, "additional");
  return absl::StrJoin(parts, "; ");
}

}  // namespace muster::formats
