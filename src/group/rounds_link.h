// Node leaders meet by messages of a fixed length, in the rounds of group/node_rounds.h.
//
// All memory is allocated with the link. If a message does not end, the sender of messages may use
// that memory as long as the process lives: it is then kept, and every later meeting is the same
// error.
#pragma once

#include <memory>

#include "group/node_link.h"
#include "group/node_rounds.h"
#include "group/topology.h"

namespace shima {

class RoundsLink : public NodeLink {
 public:
  // `topology` must outlive the link.
  RoundsLink(const Topology& topology, int node);
  RoundsLink(const RoundsLink&) = delete;
  RoundsLink& operator=(const RoundsLink&) = delete;
  ~RoundsLink() override;

  [[nodiscard]] Rendezvous::Maxima meet(const Rendezvous::Maxima& mine, std::span<std::byte> value,
                                        JoinValues join) noexcept final;
  // Whether a message has not ended.
  [[nodiscard]] bool lost() const { return lost_ != Code::ok; }

 protected:
  struct Note {
    Rendezvous::Maxima words;
    Contribution::Value value;
  };
  [[nodiscard]] int rank() const { return topology_.ranks_on(node_).front(); }

 private:
  struct Memory {
    Note out{};
    Note in{};
  };

  // Sends `out` to the leader of rank `peer` and receives `in` from it; null: nothing.
  [[nodiscard]] virtual Status swap(int peer, const Note* out, Note* in) = 0;
  [[nodiscard]] Status go_round(const NodeRound& round, JoinValues join, std::size_t len_bytes);

  const Topology& topology_;
  int node_;
  std::unique_ptr<Memory> memory_;
  Code lost_ = Code::ok;  // why a meeting did not end
};

}  // namespace shima
