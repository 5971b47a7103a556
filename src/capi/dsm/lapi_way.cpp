// Accesses to one task take effect in program order. Small data is a message, and messages are in
// order. What LAPI may copy directly could overtake them, so it waits for small writes to that task
// before it. The wait is an empty Put, whose completion follows those of the messages before it.
#include "capi/dsm/lapi_way.h"

namespace shima::capi {
namespace {

// LAPI sends less than this in messages always (lapi/operate.cpp).
constexpr std::size_t copy_from_bytes = std::size_t{16} << 10;

class LapiWay final : public dsm::Way {
 public:
  LapiWay(lapi_handle_t handle, std::vector<Target> targets)
      : handle_(handle), peers_(targets.size()) {
    for (std::size_t i = 0; i < peers_.size(); ++i) peers_[i].target = targets[i];
  }

  [[nodiscard]] Status read(int task, std::uint64_t offset, std::span<std::byte> into) override {
    if (into.empty()) return {};
    SHIMA_TRY(keep_order(task));
    lapi_cntr_t here{};
    SHIMA_TRY(lapi_status(LAPI_Get(handle_, static_cast<uint>(task), into.size(),
                                   address(task, offset), into.data(), nullptr, &here)));
    return wait(here);
  }
  [[nodiscard]] Status write(int task, std::uint64_t offset, std::span<const std::byte> data,
                             bool complete) override {
    if (data.empty()) return {};
    const bool is_message = data.size() < copy_from_bytes;
    if (!is_message) SHIMA_TRY(keep_order(task));
    lapi_cntr_t done{};
    SHIMA_TRY(
        lapi_status(LAPI_Put(handle_, static_cast<uint>(task), data.size(), address(task, offset),
                             const_cast<std::byte*>(data.data()), nullptr,
                             complete ? nullptr : &done, complete ? &done : nullptr)));
    // Only what has been sent is counted: another thread may be about to wait for the others.
    if (is_message && !complete) ++peer(task).written;
    return wait(done);
  }
  [[nodiscard]] Result<std::uint64_t> rmw(int task, std::uint64_t offset,
                                          const dsm::Rmw& request) override {
    SHIMA_TRY(keep_order(task));
    lapi_cntr_t here{};
    long long previous = 0;
    std::array<long long, 2> input{static_cast<long long>(request.input[0]),
                                   static_cast<long long>(request.input[1])};
    int narrow = 0;
    std::array<int, 2> narrow_input{static_cast<int>(input[0]), static_cast<int>(input[1])};
    void* const variable = address(task, offset);
    SHIMA_TRY(lapi_status(
        request.size_bits == 64
            ? LAPI_Rmw64(handle_, request.operation, static_cast<uint>(task),
                         static_cast<long long*>(variable), input.data(), &previous, &here)
            : LAPI_Rmw(handle_, request.operation, static_cast<uint>(task),
                       static_cast<int*>(variable), narrow_input.data(), &narrow, &here)));
    SHIMA_TRY(wait(here));
    return request.size_bits == 64 ? static_cast<std::uint64_t>(previous)
                                   : static_cast<std::uint32_t>(narrow);
  }
  [[nodiscard]] Status fence() override {
    std::vector<std::uint64_t> written;
    written.reserve(peers_.size());
    for (const Peer& it : peers_) written.push_back(it.written.load());
    SHIMA_TRY(lapi_status(LAPI_Fence(handle_)));
    for (std::size_t i = 0; i < peers_.size(); ++i) note_stored(peers_[i], written[i]);
    return {};
  }

 private:
  struct Peer {
    Target target;
    std::atomic<std::uint64_t> written{0};  // messages
    std::atomic<std::uint64_t> stored{0};   // of them, those that are known to be stored
  };
  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] void* address(int task, std::uint64_t offset) {
    return reinterpret_cast<void*>(peer(task).target.base + offset);
  }
  static void note_stored(Peer& peer, std::uint64_t written) {
    std::uint64_t stored = peer.stored.load();
    while (stored < written && !peer.stored.compare_exchange_weak(stored, written)) {
    }
  }
  [[nodiscard]] Status keep_order(int task) {
    Peer& it = peer(task);
    const std::uint64_t written = it.written.load();
    if (!it.target.may_be_copied || it.stored.load() >= written) return {};
    lapi_cntr_t done{};
    SHIMA_TRY(lapi_status(LAPI_Put(handle_, static_cast<uint>(task), 0, address(task, 0), nullptr,
                                   nullptr, nullptr, &done)));
    SHIMA_TRY(wait(done));
    note_stored(it, written);
    return {};
  }
  [[nodiscard]] Status wait(lapi_cntr_t& counter) const {
    return lapi_status(LAPI_Waitcntr(handle_, &counter, 1, nullptr));
  }

  lapi_handle_t handle_;
  std::vector<Peer> peers_;
};

}  // namespace

std::unique_ptr<dsm::Way> make_lapi_way(const LapiJob& job, std::vector<Target> targets) {
  return std::make_unique<LapiWay>(job.handle(), std::move(targets));
}

}  // namespace shima::capi
