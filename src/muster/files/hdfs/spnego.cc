#include "muster/files/hdfs/spnego.h"

#include <dlfcn.h>

#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"

#include "muster/base/strings.h"

namespace muster::files {
namespace {

constexpr uint32_t kErrorMask = 0xffff0000;
constexpr uint32_t kMutual = 2;                 // GSS_C_MUTUAL_FLAG
constexpr int kOfGssApi = 1, kOfMechanism = 2;  // GSS_C_GSS_CODE, GSS_C_MECH_CODE
constexpr char kService[] = "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04";  // host-based service
constexpr char kSpnego[] = "\x2b\x06\x01\x05\x05\x02";

bool Says(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

struct Spnego::Library {
  // What is needed of <gssapi/gssapi.h>, whose binary interface RFC 2744 fixes.
  struct Buffer {
    size_t length = 0;
    void* value = nullptr;
  };
  struct Oid {
    uint32_t length;
    void* elements;
  };
  using Name = void*;
  using Context = void*;
  using Credential = void*;

  template <size_t kSize>
  static Oid MakeOid(const char (&bytes)[kSize]) {
    return {kSize - 1, const_cast<char*>(bytes)};
  }

  void* handle = nullptr;
  uint32_t (*import_name)(uint32_t*, Buffer*, Oid*, Name*) = nullptr;
  uint32_t (*release_name)(uint32_t*, Name*) = nullptr;
  uint32_t (*init_sec_context)(uint32_t*, Credential, Context*, Name, Oid*, uint32_t, uint32_t,
                               void*, Buffer*, Oid**, Buffer*, uint32_t*, uint32_t*) = nullptr;
  uint32_t (*delete_sec_context)(uint32_t*, Context*, Buffer*) = nullptr;
  uint32_t (*release_buffer)(uint32_t*, Buffer*) = nullptr;
  uint32_t (*display_status)(uint32_t*, uint32_t, int, Oid*, uint32_t*, Buffer*) = nullptr;

  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  template <typename Function>
  bool Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }
  std::string Describe(uint32_t code, int kind) const {
    uint32_t minor = 0, more = 0;
    Buffer text;
    if ((display_status(&minor, code, kind, nullptr, &more, &text) & kErrorMask) != 0) return "";
    std::string described(static_cast<const char*>(text.value), text.length);
    release_buffer(&minor, &text);
    return described.substr(0, described.find('\0'));  // some texts end with one
  }
};

std::string GetServiceHost(const std::string& url) {
  std::string_view rest = std::string_view(url).substr(url.find("//") + 2);
  if (rest.starts_with('[')) return std::string(rest.substr(1, rest.find(']') - 1));
  return std::string(rest.substr(0, rest.rfind(':')));
}

Spnego::Spnego(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Spnego::~Spnego() = default;

absl::StatusOr<std::unique_ptr<Spnego>> Spnego::Load() {
  auto library = std::make_unique<Library>();
  library->handle = dlopen("libgssapi_krb5.so.2", RTLD_NOW | RTLD_LOCAL);
  const bool found = library->handle != nullptr &&
                     library->Find("gss_import_name", &library->import_name) &&
                     library->Find("gss_release_name", &library->release_name) &&
                     library->Find("gss_init_sec_context", &library->init_sec_context) &&
                     library->Find("gss_delete_sec_context", &library->delete_sec_context) &&
                     library->Find("gss_release_buffer", &library->release_buffer) &&
                     library->Find("gss_display_status", &library->display_status);
  if (!found) {
    return absl::FailedPreconditionError(
        "the server wants Kerberos, whose library libgssapi_krb5.so.2 is not here: install it "
        "(on Debian and Ubuntu libgssapi-krb5-2, on Fedora and RHEL krb5-libs)");
  }
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Spnego>(new Spnego(std::move(library)));
}

absl::Status Spnego::Explain(const std::string& host, uint32_t major, uint32_t minor) const {
  std::string why = library_->Describe(minor, kOfMechanism);
  if (why.empty() || why == "Success" || minor == 0) why = library_->Describe(major, kOfGssApi);
  if (Says(why, "cannot find mechanisms")) why = "there is no ticket";
  std::string advice = "look at klist, and get a ticket with kinit";
  if (Says(why, "not found in Kerberos database")) {
    advice = StrCat("the realm of your ticket (klist) does not know HTTP/", host,
                    ": get a ticket of the cluster's realm with kinit, or write the NameNode's "
                    "name as the cluster does");
  } else if (Says(why, "Cannot find KDC") || Says(why, "Cannot contact any KDC")) {
    advice = "look at the realms in /etc/krb5.conf, or in the file that KRB5_CONFIG names";
  }
  return absl::UnauthenticatedError(StrCat("Kerberos for HTTP/", host, ": ", why, "; ", advice));
}

absl::StatusOr<std::string> Spnego::MakeAuthorization(const std::string& host) const {
  const Library& gss = *library_;
  std::string service = StrCat("HTTP@", host);
  Library::Buffer service_text = {service.size(), service.data()};
  Library::Oid service_kind = Library::MakeOid(kService), mechanism = Library::MakeOid(kSpnego);
  uint32_t minor = 0, ignored = 0;
  Library::Name name = nullptr;
  uint32_t major = gss.import_name(&minor, &service_text, &service_kind, &name);
  if ((major & kErrorMask) != 0) return Explain(host, major, minor);
  Library::Context context = nullptr;
  Library::Buffer token;
  major = gss.init_sec_context(&minor, nullptr, &context, name, &mechanism, kMutual, 0, nullptr,
                               nullptr, nullptr, &token, nullptr, nullptr);
  absl::StatusOr<std::string> made = "";
  if ((major & kErrorMask) != 0) {
    made = Explain(host, major, minor);
  } else {
    made = StrCat("Negotiate ",
                  absl::Base64Escape({static_cast<const char*>(token.value), token.length}));
  }
  if (token.value != nullptr) gss.release_buffer(&ignored, &token);
  if (context != nullptr) gss.delete_sec_context(&ignored, &context, nullptr);
  gss.release_name(&ignored, &name);
  return made;
}

}  // namespace muster::files
