// What a program wrote last goes into the job's status and into events, which more people read than
// its log: what looks like a secret is left out there.
#pragma once

#include <string>
#include <string_view>

namespace muster::launch::kubernetes {

// The line with "***" in the place of each
//   - value after a name that ends with password, passwd, secret, token, key, credential or
//     credentials, in any case: `DB_PASSWORD=x`, `"apiKey": "x"`, `--token x`;
//   - scheme and value after Authorization, Bearer or Basic;
//   - user and password of a URL, `https://user:password@host`;
//   - word that begins as tokens of known services do: AKIA, ASIA, ghp_, github_pat_, glpat-, hf_,
//     xoxb-, and JSON Web Tokens (eyJ).
// It knows no other secret, such as one that a program prints by itself.
std::string HideSecrets(std::string_view line);

}  // namespace muster::launch::kubernetes
