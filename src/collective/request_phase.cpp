#include "collective/request_phase.h"

#include "base/fault_point.h"
#include "collective/message_io.h"
#include "group/node/shared_windows.h"

namespace shima {
namespace {

// Returns whether the message is not under way any more.
Result<bool> ended(PathContext& context, std::optional<Messenger::Ticket>& ticket) {
  if (!ticket) return true;
  SHIMA_TRY_ASSIGN(const auto message, context.messenger->done(*ticket));
  if (message) ticket.reset();
  return message.has_value();
}

}  // namespace

RequestPhase::RequestPhase(PathContext& context, bool is_master, int near_masters)
    : context_(context),
      is_leader_(context.channel.near_index() == 0),
      near_masters_(near_masters),
      rounds_(context.channel.topology().node_of(context.channel.rank()),
              context.channel.topology().node_count()),
      counted_(!is_master) {}

Result<bool> RequestPhase::step(bool has_asked) {
  if (done_) return false;
  SharedWindows& windows = *context_.channel.windows();
  bool busy = false;
  if (!counted_ && has_asked) {
    windows.count_asked();
    busy = counted_ = true;
  }
  if (!is_leader_) {
    done_ = counted_;
    return busy;
  }
  if (windows.asked() < near_masters_) return busy;
  SHIMA_TRY_ASSIGN(done_, meet_leaders());
  if (done_) windows.end_asking();
  return busy || done_;
}

// Returns whether all leaders have met.
Result<bool> RequestPhase::meet_leaders() {
  while (true) {
    SHIMA_TRY_ASSIGN(const bool next, round_ended());
    if (!next) return false;
    const auto round = rounds_.next();
    if (!round) return true;
    SHIMA_TRY(begin(*round));
  }
}

Status RequestPhase::begin(const NodeRound& round) {
  using Kind = NodeRound::Kind;
  fault_point(FaultPhase::arrive);
  const int peer = context_.channel.topology().ranks_on(round.peer).front();
  if (round.kind != Kind::give) {
    SHIMA_TRY_ASSIGN(incoming_, context_.messenger->receive(peer, Lane::leaders, {}));
  }
  if (round.kind == Kind::give || round.kind == Kind::swap) {
    SHIMA_TRY_ASSIGN(outgoing_, send_message(context_, peer, Lane::leaders, {}));
  }
  return {};
}

Result<bool> RequestPhase::round_ended() {
  SHIMA_TRY_ASSIGN(const bool sent, ended(context_, outgoing_));
  SHIMA_TRY_ASSIGN(const bool arrived, ended(context_, incoming_));
  return sent && arrived;
}

}  // namespace shima
