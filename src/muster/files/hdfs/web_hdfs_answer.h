// What an answer of WebHDFS means: a status, and whether to send the call again.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::files {

struct WebHdfsVerdict {
  absl::Status status = {};
  bool again = false;               // the same call may succeed later
  bool other_name_node = false;     // another NameNode may be the active one
  bool has_lease_of_other = false;  // another client writes the file, or did until it was lost
  bool wants_proof = false;         // of who calls: a ticket, or a token that is still valid
};

// `http_status` and `body` are those of an answer; `what` names the call and begins the message.
// The body is a RemoteException as JSON, where the server gave one. OK for a status below 400.
WebHdfsVerdict JudgeAnswer(int http_status, std::string_view body, const std::string& what);

}  // namespace muster::files
