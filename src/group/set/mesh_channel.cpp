#include "group/set/mesh_channel.h"

#include <cstring>
#include <tuple>

#include "group/agreement.h"
#include "group/combine_values.h"

namespace shima {

Status MeshLink::swap(int peer, const Note* out, Note* in) {
  if (out != nullptr) messenger_.tell(peer, Mesh::Kind::meeting, bytes_of(*out));
  if (in == nullptr) return {};
  SHIMA_TRY_ASSIGN(const MessageBuffer note, messenger_.wait_for(peer, Mesh::Kind::meeting));
  if (note.bytes().size() != sizeof *in)
    return fail(Code::internal, "meeting the other nodes: a message of another length");
  std::memcpy(in, note.bytes().data(), sizeof *in);
  return {};
}

MeshChannel::MeshChannel(std::shared_ptr<const MeshGround> ground, std::uint64_t key)
    : ground_(std::move(ground)),
      messenger_(*ground_->mesh, key, ground_->near->topology),
      link_(messenger_, ground_->near->topology, ground_->near->node,
            [this] { std::ignore = transfer_quit(); }) {}

// A member without its near part cannot meet the others, so each hears of all before it goes on.
Result<std::unique_ptr<MeshChannel>> MeshChannel::make(std::shared_ptr<const MeshGround> ground,
                                                       std::uint64_t key) {
  std::unique_ptr<MeshChannel> made(new MeshChannel(ground, key));
  auto near = caught([&] { return NodeChannel::make_near(ground->near, key, made->link_); });
  const auto mine = static_cast<std::uint64_t>(near ? Code::ok : near.error().code);
  std::uint64_t worst = mine;
  Mesh& mesh = *ground->mesh;
  for (int member = 0; member < mesh.size(); ++member)
    if (member != mesh.own()) made->messenger_.tell(member, Mesh::Kind::sum, bytes_of(mine));
  for (int member = 0; member < mesh.size(); ++member) {
    if (member == mesh.own()) continue;
    SHIMA_TRY_ASSIGN(const MessageBuffer word, made->messenger_.wait_for(member, Mesh::Kind::sum));
    worst = std::max(worst, value_in<std::uint64_t>(word.bytes()));
  }
  if (!near) return std::unexpected(near.error());
  made->near_ = *std::move(near);
  if (worst != 0)
    return fail(static_cast<Code>(worst), "a member of the set could not prepare for a file");
  return made;
}

// Member 0 adds up for all.
Result<std::uint64_t> MeshChannel::sum_before(std::uint64_t mine) {
  constexpr auto kind = Mesh::Kind::sum;
  if (rank() != 0) {
    messenger_.tell(0, kind, bytes_of(mine));
    SHIMA_TRY_ASSIGN(const MessageBuffer before, messenger_.wait_for(0, kind));
    return value_in<std::uint64_t>(before.bytes());
  }
  std::uint64_t sum = mine;
  for (int member = 1; member < size(); ++member) {
    SHIMA_TRY_ASSIGN(const MessageBuffer one, messenger_.wait_for(member, kind));
    messenger_.tell(member, kind, bytes_of(sum));
    sum = add_up(sum, value_in<std::uint64_t>(one.bytes()));
  }
  return 0;
}

Result<SumInOrder> MeshChannel::sum_in_order(const Result<std::uint64_t>& mine) noexcept {
  SHIMA_TRY_ASSIGN(const std::uint64_t all, combine_values<add_up>(*this, mine));
  const auto before = caught([&] { return sum_before(*mine); });
  SHIMA_TRY(agree_on(*this, status_of(before), "adding up in the order of members"));
  return SumInOrder{*before, all};
}

void MeshChannel::quit_transfer() noexcept {
  near_->quit_transfer();
  messenger_.quit();
}

// The node leader hears of members elsewhere, and tells the members near it.
bool MeshChannel::transfer_quit() noexcept {
  if (!near_) return false;
  if (near_->transfer_quit()) return true;
  if (near_index() != 0 || !messenger_.somebody_quit()) return false;
  near_->quit_transfer();
  return true;
}

void MeshChannel::wait_for_transfers() noexcept {
  near_->wait_for_transfers();
  messenger_.drain();
}

}  // namespace shima
