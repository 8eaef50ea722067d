// Certificates of tasks whose machines are known only once they run. The agent makes a key, which
// never leaves its machine, and the coordinator, which has the job's authority, certifies it: POST
// /v1/certificates. Whoever has the job's token may ask, for any host.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/control/service.h"
#include "muster/formats/json_fields.h"
#include "muster/net/http/client.h"
#include "muster/net/tls/certs.h"

namespace muster::control {

// The coordinator's route. `name` becomes the certificates' common name.
ServiceRoute MakeCertificateRoute(net::Credentials authority, std::string name);

// Writes server.pem, client.pem and their keys into the agent's bundle, for a task that others
// reach at `host`. The coordinator's errors; UNAVAILABLE or DEADLINE_EXCEEDED: it may be repeated.
absl::Status FetchCertificates(net::HttpClient& coordinator, const JobFolder& bundle,
                               const std::string& host);

}  // namespace muster::control
