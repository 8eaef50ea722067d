// The first line and the fields of a client's request, as bytes. No sockets here.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/net/http/bearer_token.h"
#include "muster/net/http/call.h"
#include "muster/net/http/url.h"

namespace muster::net::internal {

// The head up to and including the empty line. If `token` is not null, it is read and the result
// contains it: the caller must wipe the result.
//
// INVALID_ARGUMENT for a method, target or field that could end its line, for a field that only the
// client itself may set, and for an Authorization besides a token; no message repeats a target or a
// value. Other errors are those of reading the token.
absl::StatusOr<std::string> MakeRequestHead(const HttpUrl& url, const HttpCall& call,
                                            const BearerToken* token);

}  // namespace muster::net::internal
