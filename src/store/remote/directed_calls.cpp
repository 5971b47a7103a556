#include "store/remote/directed_calls.h"

#include <cerrno>
#include <utility>

#include "net/message_stream.h"

namespace shima::remote {
namespace {

class Part final : public DirectedPart {
 public:
  Part(std::unique_ptr<Connection> connection, std::unique_ptr<Connection>& idle,
       std::atomic<bool>& has_lost)
      : connection_(std::move(connection)),
        idle_(idle),
        has_lost_(has_lost),
        stream_(connection_->socket()) {}

  MessageStream& stream() override { return stream_; }
  bool is_node_alive() override { return connection_->is_node_alive(); }
  std::unexpected<Error> lose(int sys_errno) override {
    has_lost_ = true;
    return connection_->failure("taking part in a collective call", sys_errno);
  }
  void end() override {
    connection_->resume();
    idle_ = std::move(connection_);
  }

 private:
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Connection>& idle_;
  std::atomic<bool>& has_lost_;
  MessageStream stream_;
};

Request request(Op op) {
  Request made;
  made.head.op = static_cast<std::uint32_t>(op);
  return made;
}

}  // namespace

FarOpening::FarOpening(const Node& node, const std::string& key_file, const Request& wanted)
    : connection_(take_connection(node, key_file)) {
  if (connection_) sent_ = (*connection_)->send(wanted, {});
}

Result<Opened> FarOpening::finish() {
  SHIMA_TRY(status_of(connection_));
  SHIMA_TRY(sent_);
  Opened made{std::move(*connection_), {}};
  const iovec piece{&made.facts, sizeof made.facts};
  const auto opened = made.connection->receive(std::span(&piece, 1));
  if (!opened) keep_connection(std::move(made.connection));
  SHIMA_TRY(opened);
  return made;
}

Result<Opened> open_over_connection(const Node& node, const std::string& key_file,
                                    const Request& wanted) {
  return FarOpening(node, key_file, wanted).finish();
}

Result<std::unique_ptr<DirectedPart>> DirectedCalls::join(const DirectedCall& call) {
  auto connection = std::exchange(idle_, nullptr);
  if (!connection || !connection->is_fresh()) {
    SHIMA_TRY_ASSIGN(Opened opened, open_());
    if (opened.facts.device != facts_.device || opened.facts.inode != facts_.inode)
      return opened.connection->failure("the file was replaced; open it again. Opening", ESTALE);
    connection = std::move(opened.connection);
  }
  const iovec piece{const_cast<DirectedCall*>(&call), sizeof call};
  SHIMA_TRY(connection->send(request(Op::join), std::span(&piece, 1)));
  return std::make_unique<Part>(std::move(connection), idle_, has_lost_);
}

void DirectedCalls::close() {
  if (!idle_ || !idle_->call(request(Op::close))) return;
  keep_connection(std::exchange(idle_, nullptr));
}

}  // namespace shima::remote
