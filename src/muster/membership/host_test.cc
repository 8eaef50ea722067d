#include "muster/membership/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <mutex>
#include <optional>

#include "muster/net/transport/fault_stream.h"
#include "muster/net/transport/socket_stream.h"

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;
using net::transport::Channel;
using net::transport::Interrupt;
using net::transport::kNever;
using net::transport::NewFaultStream;
using net::transport::SocketStream;
using process::Deadline;
using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kChiefTask = {TaskType::kChief, 0};
constexpr TaskId kWorkerTask = {TaskType::kWorker, 0};

class HostTest : public testing::Test {
 protected:
  // A connection of a peer that has authenticated as `task`. A byte of what it sends is altered, if
  // `flip_at` says so.
  std::unique_ptr<Channel> Connect(TaskId task, uint64_t flip_at = kNever) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    auto near = SocketStream::Create(process::Descriptor(fds[0]), "member").value();
    auto far = SocketStream::Create(process::Descriptor(fds[1]), "host").value();
    near->set_wants_checksums(flip_at != kNever);
    far->set_wants_checksums(flip_at != kNever);
    const net::transport::Peer peer = {.identity = {.role = std::string(job::TypeName(task.type)),
                                                    .index = static_cast<uint32_t>(task.index)}};
    host_->Serve(peer, NewFaultStream(std::move(near), {.flip_at = flip_at}).value());
    return std::make_unique<Channel>(std::move(far));
  }

  // The host's answer; nullopt if the host closes the connection instead.
  std::optional<std::vector<Message>> Ask(Channel& channel, const Message& message) {
    const std::string text = Print(message);
    const Deadline deadline = Deadline::After(60);
    if (!channel.Send(kMessage, std::as_bytes(std::span(text)), deadline, *interrupt_).ok()) {
      return std::nullopt;
    }
    std::vector<Message> answer;
    while (true) {
      const auto got = channel.Receive(deadline, *interrupt_);
      if (!got.ok()) return std::nullopt;
      if (got->type == kEnd) return answer;
      const auto bytes = got->bytes();
      answer.push_back(Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).value());
    }
  }

  static Message JoinAs(TaskId task) {
    return {.join = Join{.member = {.id = {task, 1}, .address = "a", .step = 0}}};
  }

  SystemClock clock_;
  std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
  std::mutex mutex_;
  std::vector<std::string> notes_;
  std::unique_ptr<Host> host_ =
      Host::Start({.tasks = {kChiefTask, kWorkerTask}}, clock_, [this](const std::string& text) {
        const std::lock_guard lock(mutex_);
        notes_.push_back(text);
      }).value();
};

TEST_F(HostTest, AnAnswerHasAllPendingMessages) {
  const auto chief = Connect(kChiefTask), worker = Connect(kWorkerTask);
  EXPECT_TRUE(Ask(*chief, JoinAs(kChiefTask))->empty());
  const auto answer = Ask(*worker, JoinAs(kWorkerTask));
  ASSERT_EQ(answer->size(), 1U);
  EXPECT_EQ(answer->front().view->replicas, 2);
  EXPECT_EQ(Ask(*chief, {})->front().view, answer->front().view);
  worker->Close();
  std::vector<Message> news;
  while (news.empty()) news = Ask(*chief, {}).value();
  EXPECT_EQ(news.front().broken->culprit.task, kWorkerTask);
}

TEST_F(HostTest, ATaskJoinsOnlyAsTheTaskThatItAuthenticatedAs) {
  const auto chief = Connect(kChiefTask), worker = Connect(kWorkerTask);
  EXPECT_TRUE(Ask(*chief, JoinAs(kChiefTask)));
  EXPECT_FALSE(Ask(*worker, JoinAs(kChiefTask))) << "worker-0 joined as the chief";
  EXPECT_TRUE(Ask(*chief, {})->empty()) << "the chief lost its place";
}

TEST_F(HostTest, ThreadsOfEndedConnectionsAreJoined) {
  for (int i = 0; i < 100; ++i) {
    const auto channel = Connect(kWorkerTask);
    EXPECT_TRUE(Ask(*channel, JoinAs(kWorkerTask)));
    channel->Close();
  }
  // Threads of connections that were just closed may not have ended yet.
  const auto chief = Connect(kChiefTask);
  std::vector<std::unique_ptr<Channel>> others;
  while (host_->threads() > others.size() + 1) {
    ASSERT_LT(others.size(), 200U);
    others.push_back(Connect(kWorkerTask));
    EXPECT_TRUE(Ask(*others.back(), {}));
  }
}

TEST_F(HostTest, AnInvalidMessageEndsOnlyItsOwnConnection) {
  const auto chief = Connect(kChiefTask), worker = Connect(kWorkerTask);
  EXPECT_TRUE(Ask(*chief, JoinAs(kChiefTask)));
  const std::string text = "{\"view\": 3}";
  ASSERT_TRUE(
      worker->Send(kMessage, std::as_bytes(std::span(text)), Deadline::After(60), *interrupt_)
          .ok());
  EXPECT_FALSE(worker->Receive(Deadline::After(60), *interrupt_).ok());
  EXPECT_TRUE(Ask(*chief, {}));
}

// The member hears only that its connection was closed, and what the others hear may come later
// than that it has closed all of its connections.
TEST_F(HostTest, DamagedBytesAreNoted) {
  const auto worker = Connect(kWorkerTask, /*flip_at=*/100);
  EXPECT_FALSE(Ask(*worker, JoinAs(kWorkerTask)));
  host_.reset();
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], AllOf(HasSubstr("receive from worker 0"), HasSubstr("damaged")));
}

}  // namespace
}  // namespace muster::membership
