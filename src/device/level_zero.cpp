// Level Zero (libze_loader.so.1), as the oneAPI Level Zero Specification describes it.
//
// Addresses are looked up in a context of ours for each driver. There is no selected device. Host
// memory outside the driver's allocations cannot be a source or destination of copies, so the
// driver allocates the buffer.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

#include "base/page_size.h"
#include "device/driver.h"
#include "device/pieces.h"
#include "device/symbols.h"

namespace shima {
namespace {

using Handle = void*;

constexpr int stype_context = 0xd;
constexpr int stype_queue = 0xe;
constexpr int stype_event_pool = 0x10;
constexpr int stype_event = 0x11;
constexpr int stype_host_memory = 0x16;
constexpr int stype_memory_properties = 0x17;
constexpr int type_device = 2;
constexpr std::uint32_t event_pool_host_visible = 1;
constexpr std::uint32_t event_scope_host = 4;
constexpr int queue_asynchronous = 2;
constexpr int error_out_of_host_memory = 0x70000002;
constexpr int error_out_of_device_memory = 0x70000003;

struct ContextDescription {
  int stype = stype_context;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};

struct QueueDescription {
  int stype = stype_queue;
  const void* next = nullptr;
  std::uint32_t ordinal = 0;
  std::uint32_t index = 0;
  std::uint32_t flags = 0;
  int mode = queue_asynchronous;
  int priority = 0;
};

struct EventPoolDescription {
  int stype = stype_event_pool;
  const void* next = nullptr;
  std::uint32_t flags = event_pool_host_visible;
  std::uint32_t count = CopyQueue::mark_count;
};

struct EventDescription {
  int stype = stype_event;
  const void* next = nullptr;
  std::uint32_t index = 0;
  std::uint32_t signal_scope = event_scope_host;
  std::uint32_t wait_scope = 0;
};

struct HostMemoryDescription {
  int stype = stype_host_memory;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};

struct MemoryProperties {
  int stype = stype_memory_properties;
  void* next = nullptr;
  int type = 0;
  std::uint64_t id = 0;
  std::uint64_t page_size = 0;
};

struct Region {
  std::uint32_t x, y, z, width, height, depth;
};

struct Functions {
  int (*init)(std::uint32_t flags);
  int (*get_drivers)(std::uint32_t* count, Handle* drivers);
  int (*create_context)(Handle driver, const ContextDescription* description, Handle* context);
  int (*get_properties)(Handle context, const void* pointer, MemoryProperties* properties,
                        Handle* device);
  int (*allocate_host)(Handle context, const HostMemoryDescription* description,
                       std::size_t len_bytes, std::size_t alignment, void** address);
  int (*free_memory)(Handle context, void* address);
  int (*create_list)(Handle context, Handle device, const QueueDescription* description,
                     Handle* list);
  int (*destroy_list)(Handle list);
  int (*create_pool)(Handle context, const EventPoolDescription* description, std::uint32_t count,
                     Handle* devices, Handle* pool);
  int (*destroy_pool)(Handle pool);
  int (*create_event)(Handle pool, const EventDescription* description, Handle* event);
  int (*destroy_event)(Handle event);
  int (*reset_event)(Handle event);
  int (*wait_for_event)(Handle event, std::uint64_t timeout_ns);
  int (*barrier)(Handle list, Handle signal, std::uint32_t count, Handle* waits);
  int (*copy)(Handle list, void* to, const void* from, std::size_t len_bytes, Handle signal,
              std::uint32_t count, Handle* waits);
  int (*copy_rows)(Handle list, void* to, const Region* to_region, std::uint32_t to_pitch,
                   std::uint32_t to_slice_pitch, const void* from, const Region* from_region,
                   std::uint32_t from_pitch, std::uint32_t from_slice_pitch, Handle signal,
                   std::uint32_t count, Handle* waits);
  const char* missing = nullptr;

  explicit Functions(LoadedLibrary library) {
    library.bind(init, "zeInit");
    library.bind(get_drivers, "zeDriverGet");
    library.bind(create_context, "zeContextCreate");
    library.bind(get_properties, "zeMemGetAllocProperties");
    library.bind(allocate_host, "zeMemAllocHost");
    library.bind(free_memory, "zeMemFree");
    library.bind(create_list, "zeCommandListCreateImmediate");
    library.bind(destroy_list, "zeCommandListDestroy");
    library.bind(create_pool, "zeEventPoolCreate");
    library.bind(destroy_pool, "zeEventPoolDestroy");
    library.bind(create_event, "zeEventCreate");
    library.bind(destroy_event, "zeEventDestroy");
    library.bind(reset_event, "zeEventHostReset");
    library.bind(wait_for_event, "zeEventHostSynchronize");
    library.bind(barrier, "zeCommandListAppendBarrier");
    library.bind(copy, "zeCommandListAppendMemoryCopy");
    library.bind(copy_rows, "zeCommandListAppendMemoryCopyRegion");
    missing = library.missing();
  }

  [[nodiscard]] static Status check(int error, const char* function) {
    if (error == 0) return {};
    const bool no_memory = error == error_out_of_host_memory || error == error_out_of_device_memory;
    return fail(
        no_memory ? Code::no_memory : Code::io,
        fmt::format("a buffer in Level Zero device memory: {} failed with ze_result_t {:#x}",
                    function, static_cast<unsigned>(error)));
  }
};

class LevelZeroQueue final : public CopyQueue {
 public:
  LevelZeroQueue(const Functions& ze, const DevicePlace& place)
      : ze_(ze),
        context_(reinterpret_cast<Handle>(place.context)),
        device_(reinterpret_cast<Handle>(place.device)) {}
  ~LevelZeroQueue() override {
    if (list_ != nullptr) ze_.destroy_list(list_);
    for (const Handle event : events_)
      if (event != nullptr) ze_.destroy_event(event);
    if (pool_ != nullptr) ze_.destroy_pool(pool_);
    if (!buffer_.empty()) ze_.free_memory(context_, buffer_.data());
  }

  Status prepare(std::uint64_t buffer_bytes) {
    const HostMemoryDescription memory;
    const QueueDescription queue;
    const EventPoolDescription pool;
    void* address = nullptr;
    SHIMA_TRY(
        Functions::check(ze_.allocate_host(context_, &memory, buffer_bytes, page_size(), &address),
                         "zeMemAllocHost"));
    buffer_ = {static_cast<std::byte*>(address), buffer_bytes};
    SHIMA_TRY(Functions::check(ze_.create_list(context_, device_, &queue, &list_),
                               "zeCommandListCreateImmediate"));
    SHIMA_TRY(Functions::check(ze_.create_pool(context_, &pool, 1, &device_, &pool_),
                               "zeEventPoolCreate"));
    for (std::uint32_t i = 0; i < mark_count; ++i) {
      const EventDescription event{.index = i};
      SHIMA_TRY(Functions::check(ze_.create_event(pool_, &event, &events_[i]), "zeEventCreate"));
    }
    return {};
  }

  std::span<std::byte> buffer() const override { return buffer_; }

  Status start(std::span<const StripPair> pairs) override {
    for (const StripPair& pair : pairs) {
      SHIMA_TRY(copy_pieces(
          pair,
          [&](std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes) {
            return Functions::check(
                ze_.copy(list_, reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
                         len_bytes, nullptr, 0, nullptr),
                "zeCommandListAppendMemoryCopy");
          },
          [&](const StripPair& rows) { return start_rows(rows); }));
    }
    return {};
  }

  Status set_mark(int mark) override {
    SHIMA_TRY(Functions::check(ze_.reset_event(event(mark)), "zeEventHostReset"));
    return Functions::check(ze_.barrier(list_, event(mark), 0, nullptr),
                            "zeCommandListAppendBarrier");
  }

  Status wait_for(int mark) override {
    return Functions::check(
        ze_.wait_for_event(event(mark), std::numeric_limits<std::uint64_t>::max()),
        "zeEventHostSynchronize");
  }

 private:
  [[nodiscard]] Handle event(int mark) const { return events_[static_cast<std::size_t>(mark)]; }

  // Regions have 32-bit sizes.
  Status start_rows(const StripPair& pair) {
    constexpr std::uint64_t most_rows = std::uint64_t{1} << 24;
    for (std::uint64_t done = 0; done < pair.count; done += most_rows) {
      const Region region{0,
                          0,
                          0,
                          static_cast<std::uint32_t>(pair.len_bytes),
                          static_cast<std::uint32_t>(std::min(most_rows, pair.count - done)),
                          1};
      const auto skipped = as_signed(done);
      SHIMA_TRY(Functions::check(
          ze_.copy_rows(
              list_, reinterpret_cast<void*>(pair.a_offset + skipped * pair.a_stride_bytes),
              &region, static_cast<std::uint32_t>(pair.a_stride_bytes), 0,
              reinterpret_cast<void*>(pair.b_offset + skipped * pair.b_stride_bytes), &region,
              static_cast<std::uint32_t>(pair.b_stride_bytes), 0, nullptr, 0, nullptr),
          "zeCommandListAppendMemoryCopyRegion"));
    }
    return {};
  }

  const Functions& ze_;
  Handle context_;
  Handle device_;
  Handle list_ = nullptr;
  Handle pool_ = nullptr;
  std::array<Handle, mark_count> events_{};
  std::span<std::byte> buffer_;
};

class LevelZero final : public Driver {
 public:
  explicit LevelZero(const LoadedLibrary& library) : functions_(library) {
    if (functions_.missing != nullptr || functions_.init(0) != 0) return;
    std::uint32_t count = 0;
    if (functions_.get_drivers(&count, nullptr) != 0) return;
    std::vector<Handle> drivers(count);
    if (functions_.get_drivers(&count, drivers.data()) != 0) return;
    const ContextDescription description;
    for (const Handle driver : drivers) {
      Handle context = nullptr;
      if (functions_.create_context(driver, &description, &context) == 0)
        contexts_.push_back(context);
    }
  }

  std::optional<DevicePlace> find(std::uintptr_t address) override {
    for (const Handle context : contexts_) {
      MemoryProperties properties;
      Handle device = nullptr;
      if (functions_.get_properties(context, reinterpret_cast<void*>(address), &properties,
                                    &device) == 0 &&
          properties.type == type_device)
        return DevicePlace{this, reinterpret_cast<std::uintptr_t>(context),
                           reinterpret_cast<std::uintptr_t>(device)};
    }
    return {};
  }

  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace& place,
                                                std::uint64_t buffer_bytes) override {
    auto queue = std::make_unique<LevelZeroQueue>(functions_, place);
    SHIMA_TRY(queue->prepare(buffer_bytes));
    return queue;
  }

 private:
  Functions functions_;
  std::vector<Handle> contexts_;
};

}  // namespace

Driver* find_level_zero() {
  const auto library = LoadedLibrary::find("libze_loader.so", "zeMemGetAllocProperties");
  return library ? new LevelZero(*library) : nullptr;
}

}  // namespace shima
