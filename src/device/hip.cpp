// HIP's runtime (libamdhip64.so), as the HIP Runtime API Reference describes it.
#include <fmt/format.h>

#include <array>

#include "device/driver.h"
#include "device/host_pages.h"
#include "device/pieces.h"
#include "device/symbols.h"

namespace shima {
namespace {

using Handle = void*;

constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr int first_version_with_cuda_numbers = 60000000;  // ROCm 6.0
constexpr unsigned register_portable = 1;
constexpr unsigned event_disable_timing = 2;
constexpr int copy_default = 4;  // the runtime tells by the addresses what lies where
constexpr int error_out_of_memory = 2;

struct Functions {
  int (*get_attribute)(void* data, int attribute, void* pointer);
  int (*version)(int* version);
  int (*get_device)(int* device);
  int (*set_device)(int device);
  int (*peek_at_last_error)();
  int (*get_last_error)();
  int (*register_host)(void* address, std::size_t len_bytes, unsigned flags);
  int (*unregister_host)(void* address);
  int (*create_stream)(Handle* stream, unsigned flags);
  int (*destroy_stream)(Handle stream);
  int (*create_event)(Handle* event, unsigned flags);
  int (*record_event)(Handle event, Handle stream);
  int (*wait_for_event)(Handle event);
  int (*destroy_event)(Handle event);
  int (*copy)(void* to, const void* from, std::size_t len_bytes, int kind, Handle stream);
  int (*copy_rows)(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t width_bytes, std::size_t height, int kind, Handle stream);
  const char* (*error_text)(int error);
  const char* missing = nullptr;

  explicit Functions(LoadedLibrary library) {
    library.bind(get_attribute, "hipPointerGetAttribute");
    library.bind(version, "hipRuntimeGetVersion");
    library.bind(get_device, "hipGetDevice");
    library.bind(set_device, "hipSetDevice");
    library.bind(peek_at_last_error, "hipPeekAtLastError");
    library.bind(get_last_error, "hipGetLastError");
    library.bind(register_host, "hipHostRegister");
    library.bind(unregister_host, "hipHostUnregister");
    library.bind(create_stream, "hipStreamCreateWithFlags");
    library.bind(destroy_stream, "hipStreamDestroy");
    library.bind(create_event, "hipEventCreateWithFlags");
    library.bind(record_event, "hipEventRecord");
    library.bind(wait_for_event, "hipEventSynchronize");
    library.bind(destroy_event, "hipEventDestroy");
    library.bind(copy, "hipMemcpyAsync");
    library.bind(copy_rows, "hipMemcpy2DAsync");
    library.bind(error_text, "hipGetErrorString");
    missing = library.missing();
  }

  [[nodiscard]] Status check(int error, const char* function) const {
    if (error == 0) return {};
    return fail(error == error_out_of_memory ? Code::no_memory : Code::io,
                fmt::format("a buffer in HIP device memory: {} failed: {} (HIP error {})", function,
                            error_text(error), error));
  }
};

// Keeps errors of our calls out of the calling thread's last error, which the program may ask for.
class OwnErrors {
 public:
  explicit OwnErrors(const Functions& hip) : hip_(hip), clean_(hip.peek_at_last_error() == 0) {}
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;
  ~OwnErrors() {
    if (clean_) hip_.get_last_error();
  }

 private:
  const Functions& hip_;
  bool clean_;
};

// Makes a device the calling thread's for a while.
class Current {
 public:
  Current(const Functions& hip, int device) : hip_(hip), errors_(hip) {
    if (hip.get_device(&previous_) != 0) previous_ = device;
    if (previous_ != device) status_ = hip.check(hip.set_device(device), "hipSetDevice");
    selected_ = status_ && previous_ != device;
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    if (selected_) hip_.set_device(previous_);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const Functions& hip_;
  OwnErrors errors_;  // outlives the destructor's call
  int previous_ = 0;
  bool selected_ = false;
  Status status_;
};

// Its stream waits for the default stream and the default stream for it (see cuda.cpp).
class HipQueue final : public CopyQueue {
 public:
  HipQueue(const Functions& hip, int device) : hip_(hip), device_(device) {}
  ~HipQueue() override {
    const Current current(hip_, device_);
    for (const Handle event : events_)
      if (event != nullptr) hip_.destroy_event(event);
    if (stream_ != nullptr) hip_.destroy_stream(stream_);
    if (pinned_) hip_.unregister_host(buffer().data());
  }

  Status prepare(std::uint64_t buffer_bytes) {
    SHIMA_TRY_ASSIGN(pages_, HostPages::map(buffer_bytes));
    const Current current(hip_, device_);
    SHIMA_TRY(current.status());
    SHIMA_TRY(hip_.check(hip_.create_stream(&stream_, 0), "hipStreamCreateWithFlags"));
    for (Handle& event : events_)
      SHIMA_TRY(
          hip_.check(hip_.create_event(&event, event_disable_timing), "hipEventCreateWithFlags"));
    // Copies are right without it, and slower.
    pinned_ = hip_.register_host(buffer().data(), buffer().size(), register_portable) == 0;
    return {};
  }

  std::span<std::byte> buffer() const override { return pages_.bytes(); }

  Status start(std::span<const StripPair> pairs) override {
    const Current current(hip_, device_);
    SHIMA_TRY(current.status());
    for (const StripPair& pair : pairs) {
      SHIMA_TRY(copy_pieces(
          pair,
          [&](std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes) {
            return hip_.check(hip_.copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
                                        len_bytes, copy_default, stream_),
                              "hipMemcpyAsync");
          },
          [&](const StripPair& rows) { return start_rows(rows); }));
    }
    return {};
  }

  Status set_mark(int mark) override {
    const Current current(hip_, device_);
    SHIMA_TRY(current.status());
    return hip_.check(hip_.record_event(event(mark), stream_), "hipEventRecord");
  }

  Status wait_for(int mark) override {
    const Current current(hip_, device_);
    SHIMA_TRY(current.status());
    return hip_.check(hip_.wait_for_event(event(mark)), "hipEventSynchronize");
  }

 private:
  [[nodiscard]] Handle event(int mark) const { return events_[static_cast<std::size_t>(mark)]; }

  Status start_rows(const StripPair& pair) {
    return hip_.check(
        hip_.copy_rows(reinterpret_cast<void*>(pair.a_offset), as_unsigned(pair.a_stride_bytes),
                       reinterpret_cast<void*>(pair.b_offset), as_unsigned(pair.b_stride_bytes),
                       pair.len_bytes, pair.count, copy_default, stream_),
        "hipMemcpy2DAsync");
  }

  const Functions& hip_;
  int device_;
  HostPages pages_;
  bool pinned_ = false;
  Handle stream_ = nullptr;
  std::array<Handle, mark_count> events_{};
};

class Hip final : public Driver {
 public:
  explicit Hip(const LoadedLibrary& library) : functions_(library) {
    int version = 0;
    if (usable()) functions_.version(&version);
    type_device_ = version >= first_version_with_cuda_numbers ? 2 : 1;
  }

  [[nodiscard]] bool usable() const { return functions_.missing == nullptr; }

  std::optional<DevicePlace> find(std::uintptr_t address) override {
    const OwnErrors errors(functions_);  // host memory is an error to HIP
    auto* const pointer = reinterpret_cast<void*>(address);
    unsigned type = 0;
    unsigned managed = 0;
    int device = 0;
    if (functions_.get_attribute(&type, attribute_memory_type, pointer) != 0 ||
        type != type_device_)
      return {};
    if (functions_.get_attribute(&managed, attribute_is_managed, pointer) == 0 && managed != 0)
      return {};
    if (functions_.get_attribute(&device, attribute_device_ordinal, pointer) != 0) return {};
    return DevicePlace{this, 0, static_cast<std::uintptr_t>(device)};
  }

  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace& place,
                                                std::uint64_t buffer_bytes) override {
    auto queue = std::make_unique<HipQueue>(functions_, static_cast<int>(place.device));
    SHIMA_TRY(queue->prepare(buffer_bytes));
    return queue;
  }

 private:
  Functions functions_;
  unsigned type_device_ = 2;
};

}  // namespace

Driver* find_hip() {
  const auto library = LoadedLibrary::find("libamdhip64.so", "hipPointerGetAttribute");
  if (!library) return nullptr;
  auto hip = std::make_unique<Hip>(*library);
  return hip->usable() ? hip.release() : nullptr;
}

}  // namespace shima
