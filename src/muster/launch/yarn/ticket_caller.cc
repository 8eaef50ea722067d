#include "muster/launch/yarn/ticket_caller.h"

#include <utility>

#include "muster/base/strings.h"

namespace muster::launch::yarn {
namespace {

constexpr int kUnauthorized = 401;

bool WantsTicket(const net::HttpAnswer& answer) {
  const std::string* const way = answer.head.Find("WWW-Authenticate");
  return answer.head.status == kUnauthorized && way != nullptr && way->starts_with("Negotiate");
}

}  // namespace

absl::StatusOr<net::HttpAnswer> TicketCaller::Fetch(net::HttpExchange& server,
                                                    const std::string& url, net::HttpCall call,
                                                    size_t max_body_bytes,
                                                    const net::HttpTimeouts& timeouts) {
  if (spnego_ == nullptr) {
    auto answer = server.Fetch(call, max_body_bytes, timeouts);
    if (!answer.ok() || !WantsTicket(*answer)) return answer;
    MUSTER_ASSIGN_OR_RETURN(spnego_, files::Spnego::Load());
  }
  MUSTER_ASSIGN_OR_RETURN(std::string proof,
                          spnego_->MakeAuthorization(files::GetServiceHost(url)));
  call.fields.push_back({.name = "Authorization", .value = std::move(proof)});
  auto answer = server.Fetch(call, max_body_bytes, timeouts);
  if (!answer.ok() || answer->head.status != kUnauthorized) return answer;
  return absl::UnauthenticatedError(
      StrCat("the server at ", url,
             " does not accept this user's Kerberos ticket (klist shows it): get another one with "
             "kinit"));
}

}  // namespace muster::launch::yarn
