// Accesses to one task take effect in program order. Small data is a message, and messages are in
// order. What LAPI may copy directly could overtake them, so it waits for small writes before it.
#include "capi/dsm/lapi_way.h"

namespace shima::capi {
namespace {

// LAPI sends less than this in messages always (lapi/operate.cpp).
constexpr std::size_t copy_from_bytes = std::size_t{16} << 10;

class LapiWay final : public dsm::Way {
 public:
  LapiWay(lapi_handle_t handle, std::vector<std::uint64_t> bases)
      : handle_(handle), bases_(std::move(bases)) {}

  [[nodiscard]] Status read(int task, std::uint64_t offset, std::span<std::byte> into) override {
    if (into.empty()) return {};
    SHIMA_TRY(keep_order());
    lapi_cntr_t here{};
    SHIMA_TRY(lapi_status(LAPI_Get(handle_, static_cast<uint>(task), into.size(),
                                   address(task, offset), into.data(), nullptr, &here)));
    return wait(here);
  }
  [[nodiscard]] Status write(int task, std::uint64_t offset, std::span<const std::byte> data,
                             bool complete) override {
    if (data.empty()) return {};
    const bool is_message = data.size() < copy_from_bytes;
    if (!is_message) SHIMA_TRY(keep_order());
    if (is_message && !complete) ++written_;
    lapi_cntr_t done{};
    SHIMA_TRY(
        lapi_status(LAPI_Put(handle_, static_cast<uint>(task), data.size(), address(task, offset),
                             const_cast<std::byte*>(data.data()), nullptr,
                             complete ? nullptr : &done, complete ? &done : nullptr)));
    return wait(done);
  }
  [[nodiscard]] Result<std::uint64_t> rmw(int task, std::uint64_t offset,
                                          const dsm::Rmw& request) override {
    SHIMA_TRY(keep_order());
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
  [[nodiscard]] Status fence() override { return lapi_status(LAPI_Fence(handle_)); }

 private:
  [[nodiscard]] void* address(int task, std::uint64_t offset) const {
    return reinterpret_cast<void*>(bases_[static_cast<std::size_t>(task)] + offset);
  }
  [[nodiscard]] Status keep_order() {
    const std::uint64_t written = written_.load();
    std::uint64_t fenced = fenced_.load();
    if (fenced >= written) return {};
    SHIMA_TRY(fence());
    while (fenced < written && !fenced_.compare_exchange_weak(fenced, written)) {
    }
    return {};
  }
  [[nodiscard]] Status wait(lapi_cntr_t& counter) const {
    return lapi_status(LAPI_Waitcntr(handle_, &counter, 1, nullptr));
  }

  lapi_handle_t handle_;
  std::vector<std::uint64_t> bases_;
  std::atomic<std::uint64_t> written_{0};  // messages
  std::atomic<std::uint64_t> fenced_{0};   // of them, those that are known to be stored
};

}  // namespace

std::unique_ptr<dsm::Way> make_lapi_way(const LapiJob& job, std::vector<std::uint64_t> bases) {
  return std::make_unique<LapiWay>(job.handle(), std::move(bases));
}

}  // namespace shima::capi
