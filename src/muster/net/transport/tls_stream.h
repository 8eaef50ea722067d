// TLS 1.3 around another Stream: what travels is encrypted, and whoever alters it is noticed.
//
// Both sides show a certificate of the job's authority (tls.h); the side that dialed checks that
// the other's is for the host that it dialed. Once the accepting side believes the dialing one it
// says so by 8 bytes, so that a refusal is known before anything else is sent. No sessions are
// resumed. Keys change before AES-GCM's limit (RFC 8446, 5.5). A cut looks as it does without TLS:
// frames know how long they are. docs/formats/frames.md.
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
#include "muster/process/deadline.h"

struct ssl_st;
struct bio_st;
struct bio_method_st;
struct x509_store_ctx_st;

namespace muster::net::transport {

// Errors of both, which name the peer and what to do:
//   UNAUTHENTICATED      one side does not believe the other's certificate: another authority,
//                        none, expired, another host's
//   FAILED_PRECONDITION  the peer speaks plain text
//   UNAVAILABLE, DEADLINE_EXCEEDED, the interrupt's
// Afterwards DATA_LOSS: bytes were damaged or altered on their way.
class TlsStream : public Stream {
 public:
  // `host`: name or address by which the peer was dialed.
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

  // The last byte of what Write takes counts as written when all of it has gone into the stream
  // below, so that whoever has written everything need not come back for a rest.
  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override;
  absl::StatusOr<ConstBytes> Peek() override;
  void Consume(size_t n) override;
  absl::StatusOr<size_t> Read(MutableBytes to) override;
  PollWish Arm(bool read, bool write) override;
  void Disarm() override;
  void Close() override;
  std::string binding() const override;

 private:
  static constexpr size_t kRecordBytes = size_t{16} << 10;  // of payload, TLS's limit

  TlsStream(std::unique_ptr<Stream> inner, std::shared_ptr<const Tls> tls);
  absl::Status Begin(ssl_ctx_st* context);
  absl::Status Await(bool read, process::Deadline deadline, const Interrupt& interrupt);
  absl::Status Shake(process::Deadline deadline, const Interrupt& interrupt);
  absl::Status SendWelcome(process::Deadline deadline, const Interrupt& interrupt);
  absl::Status AwaitWelcome(process::Deadline deadline, const Interrupt& interrupt);

  // What a call of OpenSSL's that gave `result` waits for: OK is more bytes, either way.
  absl::Status Judge(int result);
  absl::Status Refusal(unsigned long code) const;
  void Prepare();  // for a call of OpenSSL's
  absl::Status Closed() const;

  // One record at most: how many bytes came, 0 for want of more.
  absl::StatusOr<size_t> Decrypt(MutableBytes to);
  // Into sealed_, as one record.
  absl::Status Encrypt(ConstBytes record);
  // Sends what is sealed. False: not all of it goes now.
  absl::StatusOr<bool> Flush();
  absl::Status FlushAll(process::Deadline deadline, const Interrupt& interrupt);
  // Up to a record of what lies `at` bytes into the pieces: in place, or gathered.
  ConstBytes NextRecord(std::span<const ConstBytes> pieces, size_t at);

  // OpenSSL's way to inner_.
  static int BioWrite(bio_st* bio, const char* data, int size);
  static int BioRead(bio_st* bio, char* data, int size);
  static long BioControl(bio_st* bio, int command, long number, void* pointer);
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
  absl::Status inner_error_;      // of reading inner_, on its way through OpenSSL
  absl::Status read_error_;       // for good
  unsigned char first_byte_ = 0;  // of the peer's
  std::string shown_issuer_;      // of a certificate that is not believed
  std::string host_;              // that was dialed

  ReadBuffer buffer_;
  size_t shown_ = 0;    // what Peek showed since the last Consume
  bool dry_ = false;    // inner_ had no more when it was last asked
  bool armed_ = false;  // inner_

  std::array<std::byte, kRecordBytes> gathered_ = {};
  std::vector<std::byte> sealed_;  // records that have not gone
  size_t sealed_gone_ = 0;         // bytes of them that have
  bool owes_ = false;              // the last byte of what is sealed has not counted as written
  uint64_t records_ = 0;           // sent under this key
};

// The words of an error in OpenSSL's queue, which hold nothing secret.
std::string_view TlsReasonOf(unsigned long code);

}  // namespace muster::net::transport
