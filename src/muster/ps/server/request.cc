#include "muster/ps/server/request.h"

#include <utility>

namespace muster::ps {

template <class M>
absl::Status Request::ReadAs(ConstBytes bytes) {
  MUSTER_ASSIGN_OR_RETURN(request_, Parse<M>(bytes));
  return absl::OkStatus();
}

absl::Status Request::Read(const net::transport::Message& message) {
  const ConstBytes bytes = message.bytes();
  type_ = message.type;
  answer_ = Empty();
  switch (type_) {
    case kHello:
      return ReadAs<Hello>(bytes);
    case kWait:
      return ReadAs<Wait>(bytes);
    case kPull:
      return ReadAs<Pull>(bytes);
    case kPush:
      request_ = PushBytes{.bytes = Bytes(bytes.begin(), bytes.end())};
      return absl::OkStatus();
    case kHold:
      return ReadAs<Hold>(bytes);
    case kMeasure:
      return ReadAs<Measure>(bytes);
    case kSettle:
      return ReadAs<Settle>(bytes);
    case kReady:
      return ReadAs<Ready>(bytes);
    case kBreak:
      return ReadAs<Break>(bytes);
    case kBeat:
      return ReadAs<Beat>(bytes);
    case kLoad:
    case kFetch:
      return ReadAs<Slice>(bytes);
    case kLoadKeys:
    case kFetchKeys:
      return ReadAs<KeySlice>(bytes);
    case kBegin:
    case kRelease:
    case kEnd:
    case kStopAll:
      return ReadAs<Begin>(bytes);
    case kFinish:
      return ReadAs<Finish>(bytes);
    default:
      return absl::InvalidArgumentError(
          StrCat("parameter servers have no request of type ", type_));
  }
}

absl::Status Request::HandleBegin(ServerState& state, const Begin& begin) const {
  switch (type_) {
    case kBegin:
      return state.OnBegin(from_, begin);
    case kRelease:
      return state.OnRelease(from_, begin);
    case kStopAll:
      return state.OnStopAll(from_);
    default:
      return state.OnEnd(from_);
  }
}

absl::Status Request::HandleSlice(ServerState& state, const Slice& slice) {
  if (type_ == kLoad) return state.OnLoad(from_, slice);
  MUSTER_ASSIGN_OR_RETURN(const std::span<const float> values, state.OnFetch(from_, slice));
  dense_.assign(values.begin(), values.end());
  Slice fetched = slice;
  fetched.values = dense_;
  answer_ = fetched;
  return absl::OkStatus();
}

absl::Status Request::HandleKeys(ServerState& state, const KeySlice& slice) {
  if (type_ == kLoadKeys) return state.OnLoadKeys(from_, slice);
  MUSTER_ASSIGN_OR_RETURN(tables::DynamicTableEntries entries, state.OnFetchKeys(from_, slice));
  dense_ = std::move(entries.values);
  answer_ = KeySlice{.generation = slice.generation,
                     .variable = slice.variable,
                     .first = slice.first,
                     .count = slice.count,
                     .keys = std::move(entries.keys),
                     .counts = std::move(entries.counts),
                     .last_steps = std::move(entries.last_steps),
                     .values = dense_};
  return absl::OkStatus();
}

absl::Status Request::Apply(ServerState& state) {
  switch (type_) {
    case kHello: {
      MUSTER_ASSIGN_OR_RETURN(answer_,
                              state.OnHello(from_, incarnation_, std::get<Hello>(request_)));
      return absl::OkStatus();
    }
    case kWait:
      return absl::OkStatus();
    case kPull:
      return state.OnPull(from_, std::get<Pull>(request_));
    case kPush:
      return state.OnPush(from_, std::move(std::get<PushBytes>(request_).bytes));
    case kHold:
      return state.OnHold(from_, std::get<Hold>(request_));
    case kMeasure: {
      Measured measured;
      MUSTER_ASSIGN_OR_RETURN(measured.squares,
                              state.OnMeasure(from_, std::get<Measure>(request_)));
      answer_ = std::move(measured);
      return absl::OkStatus();
    }
    case kSettle:
      return state.OnSettle(from_, std::get<Settle>(request_));
    case kFinish:
      return state.OnFinish(from_, std::get<Finish>(request_));
    case kReady:
      return state.OnReady(from_, std::get<Ready>(request_));
    case kBreak:
      return state.OnBreak(from_, std::get<Break>(request_));
    case kBeat:
      return state.OnBeat(incarnation_, std::get<Beat>(request_));
    case kLoad:
    case kFetch:
      return HandleSlice(state, std::get<Slice>(request_));
    case kLoadKeys:
    case kFetchKeys:
      return HandleKeys(state, std::get<KeySlice>(request_));
    default:
      return HandleBegin(state, std::get<Begin>(request_));
  }
}

absl::StatusOr<bool> Request::Answer(ServerState& state) {
  switch (type_) {
    case kWait:
      return state.AnswerWait(from_, std::get<Wait>(request_), &answer_.emplace<State>());
    case kPull:
      return state.AnswerPull(from_, std::get<Pull>(request_), &dense_, &rows_,
                              &answer_.emplace<Pulled>());
    case kPush:
      return state.AnswerPush(from_, &answer_.emplace<Pushed>());
    case kHold:
      return state.AnswerHold(from_, std::get<Hold>(request_), &answer_.emplace<Held>());
    default:
      return true;
  }
}

uint16_t Request::Print(const absl::Status& status) {
  if (status.ok()) {
    std::visit([this](const auto& answer) { ps::Print(answer, &bytes_); }, answer_);
    return kAnswer;
  }
  ps::Print(Refused{.code = static_cast<uint32_t>(status.code()),
                    .text = std::string(ToStd(status.message()))},
            &bytes_);
  return kRefused;
}

}  // namespace muster::ps
