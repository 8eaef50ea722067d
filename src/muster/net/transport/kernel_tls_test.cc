// TLS whose records the stream below encrypts, as a kernel does (stream_conformance_test.cc has
// tests with the kernel of this machine, where that can).
#include "muster/net/transport/kernel_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/escaping.h"

#include "muster/net/transport/channel.h"
#include "muster/net/transport/fault_stream.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/test_streams.h"
#include "muster/net/transport/tls_stream.h"

namespace muster::net::transport {
namespace {

using testing::HasSubstr;

constexpr size_t kMostInRecord = size_t{16} << 10;

// Does in this process what the kernel does with its keys (RFC 8446, 5.2). What it has encrypted is
// sent by and by, and what was not is lost at Close().
class EncryptingStream final : public Stream {
 public:
  explicit EncryptingStream(std::unique_ptr<Stream> inner)
      : Stream(inner->peer()), inner_(std::move(inner)) {}
  ~EncryptingStream() override {
    sender_.request_stop();
    sender_.join();
    EVP_CIPHER_CTX_free(context_);
  }

  int keys() const { return keys_; }

  void RefuseKeys() { refuses_ = true; }
  absl::Status SetTlsKey(const TlsKey& key) override {
    const std::lock_guard lock(mutex_);
    if (refuses_) return absl::FailedPreconditionError("no key");
    const EVP_CIPHER* const cipher = key.suite == kAes128Suite   ? EVP_aes_128_gcm()
                                     : key.suite == kAes256Suite ? EVP_aes_256_gcm()
                                                                 : EVP_chacha20_poly1305();
    EXPECT_EQ(EVP_EncryptInit_ex(context_, cipher, nullptr,
                                 reinterpret_cast<const unsigned char*>(key.key.data()), nullptr),
              1);
    iv_ = key.iv;
    number_ = 0;
    ++keys_;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> WriteTlsRecord(uint8_t type, ConstBytes record, double seconds) override {
    const auto deadline = process::Deadline::After(seconds);
    absl::StatusOr<bool> gone = Flush();
    while (gone.ok() && !*gone && !deadline.expired()) gone = Rest();
    if (!gone.ok() || !*gone) return gone;
    {
      const std::lock_guard lock(mutex_);
      Seal(type, record);
    }
    for (gone = Flush(); gone.ok() && !*gone && !deadline.expired();) gone = Rest();
    return gone.ok() ? absl::StatusOr<bool>(true) : gone;
  }
  // Takes one record at a time.
  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override {
    const std::lock_guard lock(mutex_);
    if (keys_ == 0) return inner_->Write(pieces);
    MUSTER_ASSIGN_OR_RETURN(const bool gone, Send());
    if (!gone) return 0;
    std::vector<std::byte> record;
    for (const ConstBytes piece : pieces) {
      const size_t n = std::min(piece.size(), kMostInRecord - record.size());
      record.insert(record.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(n));
    }
    Seal(23, record);
    MUSTER_RETURN_IF_ERROR(Send().status());
    return record.size();
  }
  absl::StatusOr<ConstBytes> Peek() override {
    const std::lock_guard lock(mutex_);
    return inner_->Peek();
  }
  void Consume(size_t n) override {
    const std::lock_guard lock(mutex_);
    inner_->Consume(n);
  }
  absl::StatusOr<size_t> Read(MutableBytes to) override {
    const std::lock_guard lock(mutex_);
    return inner_->Read(to);
  }
  PollWish Arm(bool read, bool write) override {
    const std::lock_guard lock(mutex_);
    return inner_->Arm(read, write);
  }
  void Disarm() override {
    const std::lock_guard lock(mutex_);
    inner_->Disarm();
  }
  void Close() override {
    const std::lock_guard lock(mutex_);
    sealed_.clear();
    inner_->Close();
  }

 private:
  void Seal(uint8_t type, ConstBytes record) {
    std::string nonce = iv_;
    for (int i = 0; i < 8; ++i) {
      nonce[11 - static_cast<size_t>(i)] ^= static_cast<char>(number_ >> (8 * i));
    }
    ++number_;
    constexpr size_t kTag = 16, kHeader = 5;
    const size_t inside = record.size() + 1;
    std::vector<unsigned char> plain(inside), out(kHeader + inside + kTag);
    std::memcpy(plain.data(), record.data(), record.size());
    plain.back() = type;
    const auto length = static_cast<uint16_t>(inside + kTag);
    const unsigned char header[kHeader] = {23, 3, 3, static_cast<unsigned char>(length >> 8),
                                           static_cast<unsigned char>(length & 255)};
    std::copy(std::begin(header), std::end(header), out.begin());
    int n = 0;
    EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr,
                       reinterpret_cast<const unsigned char*>(nonce.data()));
    EVP_EncryptUpdate(context_, nullptr, &n, header, kHeader);
    EVP_EncryptUpdate(context_, out.data() + kHeader, &n, plain.data(), static_cast<int>(inside));
    EVP_EncryptFinal_ex(context_, out.data() + kHeader + n, &n);
    EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, kTag, out.data() + kHeader + inside);
    const ConstBytes sealed = std::as_bytes(std::span(out));
    sealed_.insert(sealed_.end(), sealed.begin(), sealed.end());
  }
  absl::StatusOr<bool> Send() {
    while (!sealed_.empty()) {
      const ConstBytes rest(sealed_);
      MUSTER_ASSIGN_OR_RETURN(const size_t went, inner_->Write({&rest, 1}));
      if (went == 0) return false;
      sealed_.erase(sealed_.begin(), sealed_.begin() + static_cast<ptrdiff_t>(went));
    }
    return true;
  }

  absl::StatusOr<bool> Flush() {
    const std::lock_guard lock(mutex_);
    return Send();
  }
  // The same, a little later.
  absl::StatusOr<bool> Rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Flush();
  }

  const std::unique_ptr<Stream> inner_;
  std::mutex mutex_;
  EVP_CIPHER_CTX* const context_ = EVP_CIPHER_CTX_new();
  std::string iv_;
  uint64_t number_ = 0;
  int keys_ = 0;
  bool refuses_ = false;
  std::vector<std::byte> sealed_;
  std::jthread sender_{[this](const std::stop_token& stop) {
    while (!stop.stop_requested()) Rest().status().IgnoreError();
  }};
};

class KernelTlsTest : public testing::Test {
 protected:
  struct Pair {
    std::unique_ptr<Stream> dialed = {}, accepted = {};
    EncryptingStream *dialed_by = nullptr, *accepted_by = nullptr;
  };

  std::shared_ptr<const Tls> NewTls(uint64_t records_per_key = TlsOptions().records_per_key) {
    return MakeTls(authority_, {.records_per_key = records_per_key, .by_kernel = true});
  }
  // Two connected ends, over streams that can encrypt.
  Pair Make(std::shared_ptr<const Tls> tls, std::shared_ptr<const Tls> other,
            const FaultOptions& faults = {}) {
    int fds[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    auto near = std::make_unique<EncryptingStream>(
        SocketStream::Create(process::Descriptor(fds[0]), "near").value());
    auto far = std::make_unique<EncryptingStream>(
        NewFaultStream(SocketStream::Create(process::Descriptor(fds[1]), "far").value(), faults)
            .value());
    Pair pair = {.dialed_by = near.get(), .accepted_by = far.get()};
    auto dialing = std::async(std::launch::async, [&, inner = std::move(near)]() mutable {
      return TlsStream::Dialed(std::move(inner), tls, "127.0.0.1", TestDeadline(), *interrupt_);
    });
    auto accepted = TlsStream::Accepted(std::move(far), other, TestDeadline(), *interrupt_);
    auto dialed = dialing.get();
    EXPECT_TRUE(dialed.ok() && accepted.ok()) << dialed.status() << accepted.status();
    pair.dialed = *std::move(dialed);
    pair.accepted = *std::move(accepted);
    return pair;
  }

  // Messages of many sizes in both directions at the same time.
  void ExpectTalk(std::unique_ptr<Stream> one, std::unique_ptr<Stream> other) {
    Channel first(std::move(one)), second(std::move(other));
    const auto send = [&](Channel& channel, unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < kMessages; ++i) {
        const std::string text(random() % (i % 10 == 0 ? 300'000 : 2000), static_cast<char>(i));
        const absl::Status sent =
            channel.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_);
        ASSERT_TRUE(sent.ok()) << sent;
      }
    };
    const auto receive = [&](Channel& channel, unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < kMessages; ++i) {
        const size_t size = random() % (i % 10 == 0 ? 300'000 : 2000);
        const auto message = channel.Receive(TestDeadline(), *interrupt_);
        ASSERT_TRUE(message.ok()) << message.status();
        const ConstBytes bytes = message->bytes();
        ASSERT_EQ(bytes.size(), size);
        for (const std::byte byte : bytes) ASSERT_EQ(byte, static_cast<std::byte>(i));
      }
    };
    std::thread there([&] { send(first, 1); });
    receive(second, 1);
    there.join();
    std::thread back([&] { send(second, 2); });
    receive(first, 2);
    back.join();
    first.Close();
    const absl::Status end = second.Receive(TestDeadline(), *interrupt_).status();
    EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  }

  static constexpr int kMessages = 60;
  const Credentials authority_ = MakeAuthority("job", 10).value();
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

// RFC 8448, 3: the server's first secret for data, and what is derived from it.
TEST(TlsSecretTest, KeysAreThoseOfTheStandard) {
  const std::string bytes =
      absl::HexStringToBytes("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643");
  const TlsSecret secret(kAes128Suite, bytes);
  const auto key = secret.MakeKey();
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(absl::BytesToHexString(key->key), "9f02283b6c9c07efc26bb9f2ac92e356");
  EXPECT_EQ(absl::BytesToHexString(key->iv), "cf782b88dd83549aadf1e984");
  EXPECT_TRUE(TlsSecret(kAes256Suite, bytes).empty()) << "SHA-384 has 48 bytes";
  EXPECT_TRUE(TlsSecret(0x1304, bytes).empty()) << "a suite that nobody knows";
}

TEST_F(KernelTlsTest, OpenSslReadsWhatTheStreamEncrypts) {
  for (const char* const suite :
       {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}) {
    const auto near = NewTls();
    ASSERT_EQ(SSL_CTX_set_ciphersuites(near->client(), suite), 1);
    for (const auto& far : {NewTls(), MakeTls(authority_)}) {
      Pair pair = Make(near, far);
      EXPECT_EQ(pair.dialed_by->keys(), 1);
      EXPECT_EQ(pair.accepted_by->keys(), far->options().by_kernel ? 1 : 0);
      EXPECT_EQ(pair.dialed->binding(), pair.accepted->binding());
      ExpectTalk(std::move(pair.dialed), std::move(pair.accepted));
    }
  }
}

TEST_F(KernelTlsTest, AResumedSessionHasKeysOfItsOwn) {
  const auto near = NewTls(), far = NewTls();
  for (const bool is_resumed : {false, true}) {
    Pair pair = Make(near, far);
    EXPECT_EQ(static_cast<TlsStream&>(*pair.dialed).is_resumed(), is_resumed);
    ExpectTalk(std::move(pair.dialed), std::move(pair.accepted));
  }
}

TEST_F(KernelTlsTest, KeysChange) {
  Pair pair = Make(NewTls(/*records_per_key=*/3), NewTls());
  Channel from(std::move(pair.dialed)), to(std::move(pair.accepted));
  for (int i = 0; i < 20; ++i) {
    const std::string text(100, static_cast<char>(i));
    ASSERT_TRUE(from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).ok());
    const auto message = to.Receive(TestDeadline(), *interrupt_);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->bytes().size(), text.size());
  }
  EXPECT_GE(pair.dialed_by->keys(), 7);
  EXPECT_EQ(pair.accepted_by->keys(), 1);
}

TEST_F(KernelTlsTest, SlowPiecesAreRight) {
  Pair pair = Make(NewTls(/*records_per_key=*/5), NewTls(5), {.seed = 3, .short_io = 0.5});
  ExpectTalk(std::move(pair.dialed), std::move(pair.accepted));
}

// The stream still holds the end of the message when it is closed.
TEST_F(KernelTlsTest, AMessageThatWasSentArrivesThoughTheSenderClosesAtOnce) {
  Pair pair = Make(NewTls(), NewTls());
  Channel from(std::move(pair.dialed)), to(std::move(pair.accepted));
  const std::string text(2'000'000, 'x');  // more than the socket holds
  std::thread sender([&] {
    EXPECT_TRUE(from.Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).ok());
    from.Close();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto message = to.Receive(TestDeadline(), *interrupt_);
  sender.join();
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->bytes().size(), text.size());
}

// The next key is refused after the other side was told of it.
TEST_F(KernelTlsTest, AConnectionWithoutItsNextKeyIsGivenUp) {
  Pair pair = Make(NewTls(/*records_per_key=*/1), NewTls());
  pair.dialed_by->RefuseKeys();
  const std::string text = "text";
  const ConstBytes piece = std::as_bytes(std::span(text));
  ASSERT_EQ(pair.dialed->Write({&piece, 1}).value(), text.size());
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = pair.dialed->Write({&piece, 1}).status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is given up: no key"));
  }
}

// Neither side writes any more.
TEST_F(KernelTlsTest, BothSidesKnowOfAlteredBytes) {
  Pair pair = Make(NewTls(), NewTls(), {.flip_at = 20'000});
  const std::string text(30'000, 'x');
  const ConstBytes piece = std::as_bytes(std::span(text));
  for (size_t sent = 0; sent < text.size();) {
    const ConstBytes rest = piece.subspan(sent);
    sent += pair.dialed->Write({&rest, 1}).value();
  }
  const auto read_to_error = [](Stream& stream) {
    while (true) {
      const absl::StatusOr<ConstBytes> some = stream.Peek();
      if (!some.ok()) return some.status();
      stream.Consume(some->size());
    }
  };
  const absl::Status found = read_to_error(*pair.accepted), told = read_to_error(*pair.dialed);
  EXPECT_THAT(std::string(found.message()), HasSubstr("were damaged or altered on their way"));
  EXPECT_THAT(std::string(told.message()), HasSubstr("what it got was damaged"));
  EXPECT_EQ(pair.accepted->Write({&piece, 1}).status(), found);
  EXPECT_EQ(pair.dialed->Write({&piece, 1}).status(), told);
}

// The stream below, a unix socket, cannot encrypt: OpenSSL does.
TEST_F(KernelTlsTest, WithoutSuchAStreamOpenSslEncrypts) {
  const auto tls = MakeTls(authority_, {.records_per_key = 3, .by_kernel = true});
  int fds[2] = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  auto near = SocketStream::Create(process::Descriptor(fds[0]), "near").value();
  auto far = SocketStream::Create(process::Descriptor(fds[1]), "far").value();
  auto dialing = std::async(std::launch::async, [&, inner = std::move(near)]() mutable {
    return TlsStream::Dialed(std::move(inner), tls, "127.0.0.1", TestDeadline(), *interrupt_);
  });
  auto accepted = TlsStream::Accepted(std::move(far), tls, TestDeadline(), *interrupt_).value();
  ExpectTalk(dialing.get().value(), std::move(accepted));
}

TEST_F(KernelTlsTest, AKernelThatCannotIsNamedAtTheStart) {
  const std::string folder = testing::TempDir() + "kernel-tls-certs";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(MakeJobCertificates(folder, "job", {"127.0.0.1"}, 10).ok());
  const auto tls = Tls::Read(folder, "127.0.0.1", /*by_kernel=*/true);
  EXPECT_EQ(tls.ok(), KernelChangesTlsKeys()) << tls.status();
  if (!tls.ok()) {
    EXPECT_EQ(tls.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(tls.status().message()), HasSubstr("modprobe tls"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster::net::transport
