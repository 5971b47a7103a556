#include "simulate/job.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "group/node_rounds.h"

namespace shima::simulate {
namespace {

// What is estimated is a call that follows others, for which windows have their usual size.
constexpr std::uint64_t enough_bytes = std::uint64_t{1} << 30;

bool sends(NodeRound::Kind kind) {
  return kind == NodeRound::Kind::give || kind == NodeRound::Kind::swap;
}

// The leaders of all nodes, which take turns until none can go on.
class Leaders {
 public:
  explicit Leaders(std::vector<Digest> values) : values_(std::move(values)) {
    const int count = static_cast<int>(values_.size());
    for (int node = 0; node < count; ++node) {
      leaders_.push_back({NodeRounds(node, count), {}});
      leaders_.back().round = leaders_.back().rounds.next();
    }
  }

  std::vector<Digest> run() {
    std::deque<int> ready;
    for (int node = 0; std::cmp_less(node, leaders_.size()); ++node) {
      send(node);
      ready.push_back(node);
    }
    while (!ready.empty()) {
      const int node = ready.front();
      ready.pop_front();
      while (receive(node)) {
      }
      for (const int peer : std::exchange(woken_, {})) ready.push_back(peer);
    }
    return std::move(values_);
  }

 private:
  struct Leader {
    NodeRounds rounds;
    std::optional<NodeRound> round;
  };

  [[nodiscard]] Leader& leader(int node) { return leaders_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Digest& value(int node) { return values_[static_cast<std::size_t>(node)]; }

  void send(int node) {
    const auto& round = leader(node).round;
    if (!round || !sends(round->kind)) return;
    messages_[{node, round->peer}].push_back(value(node));
    woken_.push_back(round->peer);
  }

  // Ends the node's round if its message has arrived; returns whether it did.
  bool receive(int node) {
    const auto round = leader(node).round;
    if (!round) return false;
    if (round->kind != NodeRound::Kind::give) {
      auto& arrived = messages_[{round->peer, node}];
      if (arrived.empty()) return false;
      const Digest other = arrived.front();
      arrived.pop_front();
      value(node) = round->kind == NodeRound::Kind::adopt ? other : join(value(node), other);
    }
    leader(node).round = leader(node).rounds.next();
    send(node);
    return true;
  }

  std::vector<Digest> values_;
  std::vector<Leader> leaders_;
  std::map<std::pair<int, int>, std::deque<Digest>> messages_;
  std::vector<int> woken_;
};

}  // namespace

Digest joined(std::span<const Digest> digests) {
  Digest all = digests.front();
  for (const Digest& digest : digests.subspan(1)) all = join(all, digest);
  return all;
}

std::vector<Digest> joined_in_rounds(std::vector<Digest> nodes) {
  return Leaders(std::move(nodes)).run();
}

int messages_in_rounds(int node, int node_count) {
  NodeRounds rounds(node, node_count);
  int sent = 0;
  while (const auto round = rounds.next()) sent += sends(round->kind) ? 1 : 0;
  return sent;
}

Job::Job(const Workload& workload, const Notice& notice)
    : workload_(workload), topology_(topology_of(workload)), layout_(layout_of(workload)) {
  std::vector<Digest> nodes;
  int done = 0;
  for (int node = 0; node < topology_.node_count(); ++node) {
    nodes.push_back(joined(near_digests(node)));
    done += static_cast<int>(topology_.ranks_on(node).size());
    if (notice) notice(done, topology_.size());
  }
  digest_ = joined_in_rounds(std::move(nodes)).back();
  plan_ = make_plan();
}

Plan Job::make_plan() const {
  const bool several_nodes = topology_.node_count() > 1;
  return shima::make_plan(digest_, workload_.direction,
                          {.topology = topology_,
                           .layout = layout_,
                           .can_pull = true,
                           .can_pack = topology_.size() > 1,
                           .can_message = several_nodes},
                          workload_.tuning);
}

std::vector<Digest> Job::near_digests(int node) const {
  const auto ranks = topology_.ranks_on(node);
  std::vector<Digest> digests;
  digests.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Digest digest = digest_of(post_of(workload_, ranks[i]));
    digest.cached = workload_.cached || digest.member_count == 0 ? 1 : 0;
    digest.staged_bytes = enough_bytes;
    digests.push_back(digest);
  }
  return digests;
}

}  // namespace shima::simulate
