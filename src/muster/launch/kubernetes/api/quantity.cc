#include "muster/launch/kubernetes/api/quantity.h"

#include <charconv>
#include <iterator>

#include "muster/base/status.h"

namespace muster::launch::kubernetes {
namespace {

__extension__ using Int128 = __int128;

constexpr Int128 kOne = 1'000'000'000;  // in nanos
constexpr int kMaxDigits = 27;
constexpr std::string_view kDecimalUnits[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr std::string_view kBinaryUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr int kFirstExponent = -9;  // of "n"

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Int128 Power(int base, int exponent) {
  Int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= base;
  return power;
}

std::string PrintInteger(Int128 value) {
  if (value < 0) return "-" + PrintInteger(-value);
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  return digits;
}

}  // namespace

std::optional<Quantity> Quantity::Parse(std::string_view text) {
  Quantity quantity;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  Int128 digits = 0;
  int count = 0, fraction = 0;
  bool point = false;
  bool any = false;
  while (!text.empty() && (IsDigit(text[0]) || (text[0] == '.' && !point))) {
    const char c = text[0];
    if (c == '.') {
      point = true;
    } else {
      digits = digits * 10 + (c - '0');
      fraction += point ? 1 : 0;
      if (digits > 0 && ++count > kMaxDigits) return std::nullopt;
      if (fraction > kMaxDigits) return std::nullopt;
    }
    text.remove_prefix(1);
    any = any || c != '.';
  }
  if (!any) return std::nullopt;
  int exponent = 9 - fraction;  // of 10, from digits to nanos
  int binary = 0;               // of 1024
  bool known = false;
  for (int i = 0; i < static_cast<int>(std::size(kDecimalUnits)); ++i) {
    if (text != kDecimalUnits[i]) continue;
    exponent += kFirstExponent + 3 * i;
    known = true;
  }
  for (int i = 1; i < static_cast<int>(std::size(kBinaryUnits)); ++i) {
    if (text != kBinaryUnits[i]) continue;
    binary = i;
    quantity.form_ = Form::kBinary;
    known = true;
  }
  if (!known) {
    if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
    int power = 0;
    text.remove_prefix(text[1] == '+' ? 2 : 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), power);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (power < -kMaxDigits || power > kMaxDigits) return std::nullopt;
    exponent += power;
    quantity.form_ = Form::kExponent;
  }
  // A quantity of 10^27 is 10^36 nanos, which an Int128 holds.
  if (digits != 0 && count + exponent + 3 * binary > kMaxDigits + 9) return std::nullopt;
  Int128 nanos = digits * Power(1024, binary);
  if (exponent >= 0) {
    nanos = digits == 0 ? 0 : nanos * Power(10, exponent);
  } else {
    if (exponent < -kMaxDigits) return std::nullopt;
    const Int128 unit = Power(10, -exponent);
    nanos = (nanos + unit - 1) / unit;  // what is smaller than a nano counts as one
  }
  quantity.nanos_ = negative ? -nanos : nanos;
  return quantity;
}

void Quantity::Add(const Quantity& other) {
  if (nanos_ == 0) form_ = other.form_;
  nanos_ += other.nanos_;
}

std::string Quantity::Print() const {
  const Int128 size = nanos_ < 0 ? -nanos_ : nanos_;
  if (size == 0) return "0";
  if (form_ == Form::kBinary && size >= 1024 * kOne) {
    Int128 whole = (size + kOne - 1) / kOne;
    size_t unit = 0;
    while (whole % 1024 == 0 && unit + 1 < std::size(kBinaryUnits)) {
      whole /= 1024;
      ++unit;
    }
    return StrCat(nanos_ < 0 ? "-" : "", PrintInteger(whole), kBinaryUnits[unit]);
  }
  Int128 mantissa = nanos_;
  size_t unit = 0;
  while (mantissa % 1000 == 0 && unit + 1 < std::size(kDecimalUnits)) {
    mantissa /= 1000;
    ++unit;
  }
  const int exponent = kFirstExponent + 3 * static_cast<int>(unit);
  if (form_ == Form::kExponent) {
    return StrCat(PrintInteger(mantissa), exponent == 0 ? "" : StrCat("e", exponent));
  }
  return StrCat(PrintInteger(mantissa), kDecimalUnits[unit]);
}

void AddRequests(const Json& container, ResourceList* sum) {
  const Json& resources = Child(container, "resources");
  const Json& requests = Child(resources, "requests");
  const Json& asked = requests.is_object() ? requests : Child(resources, "limits");
  if (!asked.is_object()) return;
  for (const auto& [name, value] : asked.items()) {
    const auto quantity =
        Quantity::Parse(value.is_string() ? value.get<std::string>() : value.dump());
    if (quantity) (*sum)[name].Add(*quantity);
  }
}

Json PrintResources(const ResourceList& resources) {
  Json printed = Json::object();
  for (const auto& [name, quantity] : resources) printed[name] = quantity.Print();
  return printed;
}

}  // namespace muster::launch::kubernetes
