#include "group/set/nodes_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "group/agreement.h"
#include "group/set/mesh_channel.h"
#include "group/set/mesh_meeting.h"

namespace shima {
namespace {

class NodesSet final : public ProcessSet {
 public:
  explicit NodesSet(std::shared_ptr<const MeshGround> ground) : ground_(std::move(ground)) {}

  Status begin() {
    SHIMA_TRY_ASSIGN(own_, make_channel());
    return agree_on(*own_, Status{}, "meeting the processes of a set");
  }

  int index() const override { return ground_->mesh->own(); }
  int size() const override { return ground_->mesh->size(); }
  Result<std::unique_ptr<Channel>> make_channel() override {
    SHIMA_TRY_ASSIGN(auto channel, MeshChannel::make(ground_, ++channels_));
    return std::unique_ptr<Channel>(std::move(channel));
  }
  Status barrier() override { return meet_in(*own_); }

 private:
  std::shared_ptr<const MeshGround> ground_;
  std::uint64_t channels_ = 0;
  std::unique_ptr<Channel> own_;
};

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

Result<int> own_place(std::span<const SetPlace> places) {
  if (places.empty() || places.size() > static_cast<std::size_t>(most_over_nodes))
    return fail(Code::bad_argument,
                fmt::format("a set over several nodes has 1 to {} processes", most_over_nodes));
  const std::string host = own_host();
  const auto is_own = [&](const SetPlace& place) {
    return place.pid == ::getpid() && (place.host == host || place.host == short_name(host));
  };
  const auto found = std::ranges::find_if(places, is_own);
  if (found == places.end())
    return fail(
        Code::bad_argument,
        fmt::format("a set of processes: this process, {} on {}, is not in it", ::getpid(), host));
  return static_cast<int>(found - places.begin());
}

// The node of each member, by the name of its host.
std::vector<Member> members_of(std::span<const SetPlace> places) {
  std::vector<std::string_view> hosts;
  std::vector<Member> members;
  for (const SetPlace& place : places) {
    const auto known = std::ranges::find(hosts, place.host);
    members.push_back({.node = static_cast<int>(known - hosts.begin())});
    if (known == hosts.end()) hosts.push_back(place.host);
  }
  return members;
}

std::vector<pid_t> near_pids(std::span<const SetPlace> places, const std::string& host) {
  std::vector<pid_t> pids;
  for (const SetPlace& place : places)
    if (place.host == host) pids.push_back(place.pid);
  return pids;
}

}  // namespace

Result<std::unique_ptr<ProcessSet>> meet_over_nodes(const NodesCall& call) {
  SHIMA_TRY_ASSIGN(const int own, own_place(call.places));
  const std::string& host = call.places[static_cast<std::size_t>(own)].host;
  const std::vector<pid_t> pids = near_pids(call.places, host);
  std::vector<Member> members = members_of(call.places);
  auto near = ground_for(pids);
  MeshMeeting meeting(call, own);
  SHIMA_TRY(meeting.listen());
  auto segment = call_roll({pids, call.number, call.timeout, call.ready});
  MeshMeeting::Facts mine;
  if (segment) {
    take_segment(*near, *segment);
    mine = {.cores = near->segment->usable_cores(), .can_pull = near->segment->can_pull()};
  }
  SHIMA_TRY_ASSIGN(const auto all, meeting.exchange(mine, status_of(segment)));
  bool can_pull = true;
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].cores = all[i].cores;
    can_pull = can_pull && all[i].can_pull;
  }
  near->topology = Topology(members);
  near->node = near->topology.node_of(own);
  SHIMA_TRY_ASSIGN(auto sockets, meeting.connect_all_members(all));
  auto ground = std::make_shared<MeshGround>();
  ground->mesh = std::make_shared<Mesh>(std::move(sockets), own);
  ground->can_pull = can_pull;
  near->hooks.progress = [mesh = ground->mesh] { mesh->poll(); };
  near->hooks.peers = [mesh = ground->mesh, on_node = near->hooks.peers]() -> Status {
    SHIMA_TRY(on_node());
    return mesh->check();
  };
  ground->near = near;
  auto set = std::make_unique<NodesSet>(ground);
  SHIMA_TRY(set->begin());
  return set;
}

}  // namespace shima
