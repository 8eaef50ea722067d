#include "muster/net/http/request_reader.h"

#include <algorithm>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "muster/base/strings.h"

namespace muster::net {

namespace http = boost::beast::http;

struct HttpRequestReader::Parser : http::request_parser<http::string_body> {};

namespace {

std::string_view FromBoost(boost::beast::string_view text) { return {text.data(), text.size()}; }
boost::beast::string_view ToBoost(std::string_view text) { return {text.data(), text.size()}; }

HttpFault MakeFault(boost::beast::error_code error, const HttpLimits& limits) {
  if (error == http::error::header_limit) {
    return {431, StrCat("request header: more than ", limits.header_bytes, " bytes")};
  }
  if (error == http::error::body_limit) {
    return {413, StrCat("request body: more than ", limits.body_bytes, " bytes")};
  }
  return {400, StrCat("request: not HTTP/1.1: ", error.message())};
}

}  // namespace

HttpRequestReader::HttpRequestReader(const HttpLimits& limits)
    : parser_(std::make_unique<Parser>()), limits_(limits) {
  parser_->header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser_->body_limit(limits.body_bytes);
}

HttpRequestReader::~HttpRequestReader() = default;

size_t HttpRequestReader::Put(std::string_view bytes) {
  size_t taken = 0;
  while (!fault_ && !done() && taken < bytes.size()) {
    if (header_done() && !body_accepted_) break;
    boost::beast::error_code error;
    const size_t now =
        parser_->put(boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
    taken += now;
    if (!header_done()) CountHeader(now, bytes.size() - taken);
    if (header_done() && !body_accepted_) CheckEncoding();
    if (error == http::error::need_more) break;
    if (error && !fault_) fault_ = MakeFault(error, limits_);
    if (now == 0) break;
  }
  return taken;
}

// Beast compares its limit with the bytes of one call, but a header may come in many calls.
void HttpRequestReader::CountHeader(size_t taken, size_t waiting) {
  header_taken_ += taken;
  if (header_taken_ + waiting > limits_.header_bytes) {
    fault_ = MakeFault(http::error::header_limit, limits_);
  }
}

void HttpRequestReader::CheckEncoding() {
  if (parser_->get().count(http::field::transfer_encoding) == 0) return;
  fault_ = {411, "request body: send it whole, with Content-Length and no Transfer-Encoding"};
}

bool HttpRequestReader::header_done() const { return parser_->is_header_done(); }

void HttpRequestReader::AcceptBody() { body_accepted_ = true; }

bool HttpRequestReader::done() const { return parser_->is_done(); }

std::string_view HttpRequestReader::method() const {
  return FromBoost(parser_->get().method_string());
}

std::string_view HttpRequestReader::target() const { return FromBoost(parser_->get().target()); }

std::string_view HttpRequestReader::Field(std::string_view name) const {
  const auto [first, last] = parser_->get().equal_range(ToBoost(name));
  if (first == last || std::next(first) != last) return {};
  return FromBoost(first->value());
}

HttpFields HttpRequestReader::fields() const {
  HttpFields fields;
  for (const auto& field : parser_->get()) {
    fields.push_back(
        {std::string(FromBoost(field.name_string())), std::string(FromBoost(field.value()))});
  }
  return fields;
}

bool HttpRequestReader::has_body() const { return parser_->content_length().value_or(0) > 0; }

bool HttpRequestReader::keep_alive() const { return parser_->keep_alive(); }

bool HttpRequestReader::expects_continue() const {
  return boost::beast::iequals(parser_->get()[http::field::expect], "100-continue");
}

const std::string& HttpRequestReader::body() const { return parser_->get().body(); }

}  // namespace muster::net
