// TLS 1.3 around another Stream: data is encrypted, and any alteration is detected.
//
// Both sides present a certificate of the job's authority (tls.h); the dialing side checks that the
// other's is for the host that it dialed. Once the accepting side trusts the dialing one it sends 8
// bytes to say so, so that a refusal is known before anything else is sent. A connection to a
// process that was dialed before resumes its session (tls_sessions.h). Keys change before AES-GCM's
// limit (RFC 8446, 5.5). Where the kernel encrypts (Tls::options), it has the key after the first
// KeyUpdate and those that follow, and OpenSSL decrypts only. (OpenSSL can then not answer a
// KeyUpdate that requests one, which no task sends.) A truncated connection is detected as without
// TLS: frames carry their length. See docs/formats/frames.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/read_buffer.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"
#include "muster/net/transport/tls_key.h"
#include "muster/process/deadline.h"

struct ssl_st;
struct bio_st;
struct bio_method_st;
struct x509_store_ctx_st;

namespace muster::net::transport {

// Errors of Dialed and Accepted, which name the peer and what to do:
//   UNAUTHENTICATED      one side does not trust the other's certificate: another authority,
//                        none, expired, another host's
//   FAILED_PRECONDITION  the peer speaks plain text
//   UNAVAILABLE, DEADLINE_EXCEEDED, the interrupt's
// Later calls return DATA_LOSS if bytes were damaged or altered in transit.
class TlsStream : public Stream {
 public:
  // `host`: the name or address by which the peer was dialed.
  static absl::StatusOr<std::unique_ptr<Stream>> Dialed(std::unique_ptr<Stream> inner,
                                                        std::shared_ptr<const Tls> tls,
                                                        const std::string& host,
                                                        process::Deadline deadline,
                                                        const Interrupt& interrupt);
  static absl::StatusOr<std::unique_ptr<Stream>> Accepted(std::unique_ptr<Stream> inner,
                                                          std::shared_ptr<const Tls> tls,
                                                          process::Deadline deadline,
                                                          const Interrupt& interrupt);
  ~TlsStream() override;

  // The last byte that Write takes counts as written only once everything has been written to the
  // inner stream, so that a caller that has written everything need not call again to flush.
  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override;
  absl::StatusOr<ConstBytes> Peek() override;
  void Consume(size_t n) override;
  absl::StatusOr<size_t> Read(MutableBytes to) override;
  PollWish Arm(bool read, bool write) override;
  void Disarm() override;
  void Close() override;
  std::string binding() const override;
  // Whether an earlier session was resumed: then neither side has shown its certificate again.
  bool is_resumed() const;

  // The connections of this context keep the secret of what they send, for the kernel.
  static void KeepSecrets(ssl_ctx_st* context);

 private:
  static constexpr size_t kRecordBytes = size_t{16} << 10;  // of payload, TLS's limit

  TlsStream(std::unique_ptr<Stream> inner, std::shared_ptr<const Tls> tls);
  absl::Status Begin(ssl_ctx_st* context);
  absl::Status Await(bool read, process::Deadline deadline, const Interrupt& interrupt);
  absl::Status Shake(process::Deadline deadline, const Interrupt& interrupt);
  absl::Status SendWelcome(process::Deadline deadline, const Interrupt& interrupt);
  absl::Status AwaitWelcome(process::Deadline deadline, const Interrupt& interrupt);
  // If the kernel is to encrypt and can: changes to a next key, which it gets.
  absl::Status MoveToKernel(process::Deadline deadline, const Interrupt& interrupt);

  // What an OpenSSL call that returned `result` waits for: OK means more bytes, in either
  // direction.
  absl::Status Judge(int result);
  absl::Status Refusal(unsigned long code) const;
  void Prepare();  // before an OpenSSL call
  absl::Status Closed() const;

  // Decrypts one record at most. Returns how many bytes it gave; 0 if more input is needed.
  absl::StatusOr<size_t> Decrypt(MutableBytes to);
  // Encrypts into sealed_, as one record.
  absl::Status Encrypt(ConstBytes record);
  // Sends what is sealed. False: not all of it could be sent now.
  absl::StatusOr<bool> Flush();
  absl::StatusOr<bool> FlushOrHear();
  absl::StatusOr<size_t> WriteByKernel(std::span<const ConstBytes> pieces);
  // False: not now, the peer must read first.
  absl::StatusOr<bool> ChangeKernelKey();
  // To be called when the peer has been told of the change.
  absl::Status GiveKernelNextKey();
  // `error`, of inner_; but if the peer has closed the connection, its alert, if that has arrived.
  absl::Status Hear(const absl::Status& error);
  absl::Status FlushAll(process::Deadline deadline, const Interrupt& interrupt);
  // Returns up to one record's bytes from offset `at` of the pieces: in place, or gathered.
  ConstBytes NextRecord(std::span<const ConstBytes> pieces, size_t at);

  absl::StatusOr<size_t> ReadInner(MutableBytes to);
  // OpenSSL's access to inner_.
  static int BioWrite(bio_st* bio, const char* data, int size);
  static int BioRead(bio_st* bio, char* data, int size);
  static long BioControl(bio_st* bio, int command, long number, void* pointer);
  static void OnSecret(const ssl_st* ssl, const char* line);
  static int OnCertificate(int good, x509_store_ctx_st* check);

  struct Free {
    void operator()(ssl_st* ssl) const;
    void operator()(bio_method_st* method) const;
  };

  const std::unique_ptr<Stream> inner_;
  const std::shared_ptr<const Tls> tls_;
  std::unique_ptr<bio_method_st, Free> method_;
  std::unique_ptr<ssl_st, Free> ssl_;
  bool open_ = true;
  bool shaken_ = false;           // the handshake is done
  absl::Status inner_error_;      // of reading inner_, passed through OpenSSL
  absl::Status read_error_;       // permanent
  unsigned char first_byte_ = 0;  // of the peer's
  std::string shown_issuer_;      // of a certificate that is not trusted
  std::string host_;              // that was dialed

  ReadBuffer buffer_;
  size_t shown_ = 0;        // what Peek showed since the last Consume
  bool dry_ = false;        // OpenSSL needs more bytes of inner_, which had none, to give any
  bool armed_ = false;      // inner_
  ConstBytes inner_shown_;  // what Peek of inner_ has shown and nothing has consumed

  std::array<std::byte, kRecordBytes> gathered_ = {};
  std::vector<std::byte> sealed_;  // records that have not been sent
  size_t sealed_gone_ = 0;         // bytes of them that have been sent
  bool owes_ = false;              // the last byte of what is sealed has not counted as written
  uint64_t records_ = 0;           // sent under this key
  TlsSecret secret_;               // of what is sent, if the kernel is to have its keys
  bool by_kernel_ = false;         // inner_ encrypts
  absl::Status write_error_;       // permanent; of a change of the kernel's key
};

// The text of an error in OpenSSL's queue; it holds nothing secret.
std::string_view GetTlsReason(unsigned long code);

}  // namespace muster::net::transport
