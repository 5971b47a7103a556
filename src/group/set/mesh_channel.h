// A channel of a set whose processes run on several nodes: a NodeChannel near this member, and the
// mesh between the nodes.
#pragma once

#include <functional>
#include <memory>

#include "group/node_channel.h"
#include "group/rounds_link.h"
#include "group/set/mesh_messenger.h"

namespace shima {

// The state that the channels of one set share.
struct MeshGround {
  std::shared_ptr<const NodeGround> near;
  std::shared_ptr<Mesh> mesh;
  bool can_pull = false;  // on every node
};

// Node leaders meet by messages of their channel.
class MeshLink final : public RoundsLink {
 public:
  // All must outlive it.
  MeshLink(MeshMessenger& messenger, const Topology& topology, int node, std::function<void()> poll)
      : RoundsLink(topology, node), messenger_(messenger), poll_(std::move(poll)) {}
  void poll() noexcept override { poll_(); }

 private:
  [[nodiscard]] Status swap(int peer, const Note* out, Note* in) override;

  MeshMessenger& messenger_;
  std::function<void()> poll_;
};

class MeshChannel final : public Channel {
 public:
  // Collective: all members get a channel or all get an error.
  [[nodiscard]] static Result<std::unique_ptr<MeshChannel>> make(
      std::shared_ptr<const MeshGround> ground, std::uint64_t key);

  [[nodiscard]] int rank() const override { return ground_->mesh->own(); }
  [[nodiscard]] std::string_view member_word() const override { return near_->member_word(); }
  [[nodiscard]] const Topology& topology() const override { return near_->topology(); }
  [[nodiscard]] NodeRanks near_ranks() const override { return near_->near_ranks(); }
  [[nodiscard]] int near_index() const override { return near_->near_index(); }
  [[nodiscard]] std::int32_t near_pid(int index) const override { return near_->near_pid(index); }
  [[nodiscard]] Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                           JoinValues join) noexcept override {
    return near_->combine(mine, join);
  }
  [[nodiscard]] Result<SumInOrder> sum_in_order(
      const Result<std::uint64_t>& mine) noexcept override;
  [[nodiscard]] Result<NearMessage> near_message(int index) override {
    return near_->near_message(index);
  }
  [[nodiscard]] Outcome agree_after(const Outcome& mine, WaitLength wait) noexcept override {
    return near_->agree(mine, wait);
  }
  void begin_transfer() noexcept override { near_->begin_transfer(); }
  void end_transfer() noexcept override { near_->end_transfer(); }
  void quit_transfer() noexcept override;
  [[nodiscard]] bool transfer_quit() noexcept override;
  void wait_for_transfers() noexcept override;
  [[nodiscard]] StagingPool& staging() override { return near_->staging(); }
  [[nodiscard]] bool can_pull() const override { return ground_->can_pull; }
  [[nodiscard]] bool one_space() const override { return near_->one_space(); }
  [[nodiscard]] SharedWindows* windows() override { return near_->windows(); }
  [[nodiscard]] WriteRequests* write_requests() override { return near_->write_requests(); }
  [[nodiscard]] SharedPointer* shared_pointer() override { return nullptr; }
  [[nodiscard]] Messenger* messenger() override { return &messenger_; }

 private:
  MeshChannel(std::shared_ptr<const MeshGround> ground, std::uint64_t key);
  [[nodiscard]] Result<std::uint64_t> sum_before(std::uint64_t mine);

  std::shared_ptr<const MeshGround> ground_;
  MeshMessenger messenger_;
  MeshLink link_;
  std::unique_ptr<NodeChannel> near_;
};

}  // namespace shima
