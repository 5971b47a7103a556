#include "collective/io_node/io_node_call.h"

#include "base/fault_point.h"
#include "collective/io_node/io_node_end.h"
#include "net/wire.h"

namespace shima {

Status IoNodeCall::join(std::span<const int> agents) {
  const Plan& plan = context_.plan;
  parts_.reserve(agents.size());
  for (const int agent : agents) {
    fault_point(FaultPhase::request);
    const Domain domain = plan.agents.domains_of(agent).front();
    const DirectedCall call{.id = plan.call_id,
                            .participants = static_cast<std::uint32_t>(participants_),
                            .writes = context_.direction == Direction::write ? 1U : 0U,
                            .window_bytes = plan.window_bytes,
                            .granule_bytes = plan.granule_bytes & (~plan.granule_bytes + 1),
                            .range = domain.range};
    ++context_.counters.wire_messages;
    SHIMA_TRY_ASSIGN(auto joined, context_.file.join(domain.subfile, call));
    Part& part = parts_.emplace_back();
    part.part = std::move(joined);
    part.subfile = domain.subfile;
    part.end_number = part.part->stream().expect(end_lane, MessageBuffer(most_end_bytes));
    messenger_.add(plan.agents.rank_of(agent), part.part->stream());
  }
  return {};
}

Result<bool> IoNodeCall::step() {
  bool busy = false;
  for (Part& part : parts_) {
    if (part.has_ended) continue;
    MessageStream& stream = part.part->stream();
    if (stream.progress()) {
      part.last_moved = Clock::now();
      busy = true;
    }
    if (const auto message = stream.take(end_lane, part.end_number)) {
      SHIMA_TRY(end(part, *message));
      busy = true;
    } else if (!stream.status()) {
      return part.part->lose(stream.status().error().sys_errno);
    }
  }
  return busy;
}

Status IoNodeCall::end(Part& part, const MessageBuffer& message) {
  Status status;
  SHIMA_TRY_ASSIGN(const CallEnd ended, decode_end(message, status));
  SHIMA_TRY(status);
  Counters& counters = context_.counters;
  counters.windows += ended.windows;
  counters.runs += ended.runs;
  const bool writes = context_.direction == Direction::write;
  (writes ? counters.disk_bytes_written : counters.disk_bytes_read) += ended.disk_bytes;
  context_.file.tally_of_node(part.subfile, ended.runs, ended.disk_bytes, writes);
  part.has_ended = true;
  ++ended_;
  part.part->end();
  return {};
}

// A node may wait for other members, however long.
Status IoNodeCall::check_nodes() {
  for (Part& part : parts_) {
    if (part.has_ended || Clock::now() - part.last_moved < longest_silence_) continue;
    if (!part.part->is_node_alive()) return part.part->lose(ETIMEDOUT);
    part.last_moved = Clock::now();
  }
  return {};
}

}  // namespace shima
