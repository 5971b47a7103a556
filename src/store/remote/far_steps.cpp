#include "store/remote/far_steps.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "store/remote/own_umask.h"

namespace shima::remote {
namespace {

using Step = TargetFiles::Step;
using StepResult = TargetFiles::StepResult;

// Requests that the node has not yet received must fit into the buffers of the sockets while it
// sends, or both would wait for each other.
constexpr std::size_t most_under_way = 32;

Request request_for(const Step& step, const std::string& target) {
  Request made;
  const auto set = [&](Op op, std::uint64_t first) {
    made.head.op = static_cast<std::uint32_t>(op);
    made.head.first = as_signed(first);
  };
  switch (step.kind) {
    case Step::Kind::attach:
      set(Op::attach, step.bytes);
      break;
    case Step::Kind::examine:
      set(Op::examine, 0);
      break;
    case Step::Kind::read_text:
      set(Op::read_text, std::min<std::uint64_t>(step.bytes, most_data_bytes));
      break;
    case Step::Kind::write_text:
      set(Op::write_text, step.mode & ~own_umask());
      break;
    case Step::Kind::make:
      set(Op::make, step.mode & ~own_umask());
      break;
    case Step::Kind::set_size:
      set(Op::set_size, step.bytes);
      break;
    case Step::Kind::remove:
      set(Op::remove, 1);
      break;
  }
  made.head.flags = step.only_looks() ? 0 : Flag::linked;
  made.words = {target, step.name};
  return made;
}

class FarSteps final : public FarAnswer<std::vector<StepResult>> {
 public:
  FarSteps(Result<std::unique_ptr<Connection>> connection, std::string target,
           std::span<const Step> steps)
      : connection_(std::move(connection)),
        target_(std::move(target)),
        steps_(steps.begin(), steps.end()),
        results_(steps.size()) {
    send_some();
  }

  bool advance() override {
    if (answered_ == steps_.size()) return false;
    while (answered_ < sent_) receive_one();
    if (answered_ < steps_.size()) send_some();
    if (answered_ < steps_.size()) return true;
    if (connection_) keep_connection(std::move(*connection_));
    return false;
  }

  Result<std::vector<StepResult>> result() override { return std::move(results_); }

 private:
  // The last requests fail with the connection.
  void fail_rest(const Error& error) {
    for (; answered_ < steps_.size(); ++answered_)
      results_[answered_].done = std::unexpected(error);
  }

  void send_some() {
    if (!connection_) return fail_rest(connection_.error());
    std::vector<Request> requests;
    std::vector<std::string_view> texts;
    for (; sent_ < steps_.size() && requests.size() < most_under_way; ++sent_) {
      const Step& step = steps_[sent_];
      if (step.text.size() > most_data_bytes)
        return fail_rest(fail_errno(EFBIG, "writing " + step.name).error());
      requests.push_back(request_for(step, target_));
      texts.push_back(step.text);
      requests.back().head.flags |= Flag::followed;
    }
    if (!requests.empty()) requests.back().head.flags &= ~Flag::followed;
    if (sent_ == steps_.size() && !requests.empty()) requests.back().head.flags &= ~Flag::linked;
    const Status sent = (*connection_)->send_together(std::move(requests), texts);
    if (!sent) fail_rest(sent.error());
  }

  void receive_one() {
    const Step& step = steps_[answered_];
    StepResult& result = results_[answered_];
    Facts facts;
    std::unique_ptr<char[]> text;
    iovec room{nullptr, 0};
    if (step.kind == Step::Kind::examine) room = {&facts, sizeof facts};
    if (step.kind == Step::Kind::read_text) {
      const std::size_t most = std::min<std::size_t>(step.bytes, most_data_bytes);
      text = std::make_unique_for_overwrite<char[]>(most);
      room = {text.get(), most};
    }
    const auto reply = (*connection_)->receive({&room, room.iov_len > 0 ? 1U : 0U});
    result.done = status_of(reply);
    if (!reply && (*connection_)->is_broken()) return fail_rest(reply.error());
    ++answered_;
    if (!reply) return;
    if (text) result.text = {{text.get(), reply->data_bytes}, static_cast<uid_t>(reply->value)};
    if (step.kind != Step::Kind::examine) return;
    if (reply->data_bytes != sizeof facts)
      result.done = fail(Code::io, "examining a file", EPROTO);
    else
      result.facts = stat_of(facts);
  }

  Result<std::unique_ptr<Connection>> connection_;
  std::string target_;
  std::vector<Step> steps_;
  std::vector<StepResult> results_;
  std::size_t sent_ = 0;
  std::size_t answered_ = 0;
};

}  // namespace

std::unique_ptr<FarAnswer<std::vector<StepResult>>> begin_steps(
    Result<std::unique_ptr<Connection>> connection, const std::string& target,
    std::span<const Step> steps) {
  return std::make_unique<FarSteps>(std::move(connection), target, steps);
}

}  // namespace shima::remote
