// The first line and the fields of a client's request, as bytes. No sockets here.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/net/http/bearer_token.h"
#include "muster/net/http/call.h"
#include "muster/net/http/url.h"

namespace muster::net::internal {

// Up to and with the empty line. Reads the token (null: none), and the string then contains it: the
// caller wipes it.
//
// INVALID_ARGUMENT for a method, target or field that could end its line, for a field that only the
// client itself may set, and for an Authorization besides a token; no message repeats a target or a
// value. The errors of reading the token.
absl::StatusOr<std::string> MakeRequestHead(const HttpUrl& url, const HttpCall& call,
                                            const BearerToken* token);

}  // namespace muster::net::internal
