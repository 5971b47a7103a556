// CUDA's driver interface (libcuda.so.1), as the CUDA Driver API Reference Manual describes it.
#include <fmt/format.h>

#include <array>
#include <map>
#include <mutex>

#include "device/driver.h"
#include "device/host_pages.h"
#include "device/pieces.h"
#include "device/symbols.h"

namespace shima {
namespace {

using Handle = void*;
using Address = unsigned long long;

constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr unsigned type_device = 2;
constexpr unsigned type_unified = 4;  // the driver tells by the address what lies there
constexpr unsigned register_portable = 1;
constexpr unsigned event_disable_timing = 2;
constexpr int error_out_of_memory = 2;

struct Rows {
  std::size_t from_x;
  std::size_t from_y;
  unsigned from_type;
  const void* from_host;
  Address from_device;
  Handle from_array;
  std::size_t from_pitch;
  std::size_t to_x;
  std::size_t to_y;
  unsigned to_type;
  void* to_host;
  Address to_device;
  Handle to_array;
  std::size_t to_pitch;
  std::size_t width_bytes;
  std::size_t height;
};

struct Functions {
  int (*get_attribute)(void* data, int attribute, Address pointer);
  int (*push_context)(Handle context);
  int (*pop_context)(Handle* context);
  int (*retain_primary)(Handle* context, int device);
  int (*register_host)(void* address, std::size_t len_bytes, unsigned flags);
  int (*unregister_host)(void* address);
  int (*create_stream)(Handle* stream, unsigned flags);
  int (*destroy_stream)(Handle stream);
  int (*create_event)(Handle* event, unsigned flags);
  int (*record_event)(Handle event, Handle stream);
  int (*wait_for_event)(Handle event);
  int (*destroy_event)(Handle event);
  int (*copy)(Address to, Address from, std::size_t len_bytes, Handle stream);
  int (*copy_rows)(const Rows* rows, Handle stream);
  int (*error_text)(int error, const char** text);
  const char* missing = nullptr;

  explicit Functions(LoadedLibrary library) {
    library.bind(get_attribute, "cuPointerGetAttribute");
    library.bind(push_context, "cuCtxPushCurrent_v2");
    library.bind(pop_context, "cuCtxPopCurrent_v2");
    library.bind(retain_primary, "cuDevicePrimaryCtxRetain");
    library.bind(register_host, "cuMemHostRegister_v2");
    library.bind(unregister_host, "cuMemHostUnregister");
    library.bind(create_stream, "cuStreamCreate");
    library.bind(destroy_stream, "cuStreamDestroy_v2");
    library.bind(create_event, "cuEventCreate");
    library.bind(record_event, "cuEventRecord");
    library.bind(wait_for_event, "cuEventSynchronize");
    library.bind(destroy_event, "cuEventDestroy_v2");
    library.bind(copy, "cuMemcpyAsync");
    library.bind(copy_rows, "cuMemcpy2DAsync_v2");
    library.bind(error_text, "cuGetErrorString");
    missing = library.missing();
  }

  [[nodiscard]] Status check(int error, const char* function) const {
    if (error == 0) return {};
    const char* text = nullptr;
    if (error_text(error, &text) != 0 || text == nullptr) text = "unknown error";
    return fail(error == error_out_of_memory ? Code::no_memory : Code::io,
                fmt::format("a buffer in CUDA device memory: {} failed: {} (CUDA error {})",
                            function, text, error));
  }
};

// Makes a context the calling thread's for a while.
class Current {
 public:
  Current(const Functions& cuda, Handle context)
      : cuda_(cuda), status_(cuda.check(cuda.push_context(context), "cuCtxPushCurrent")) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Handle popped = nullptr;
    if (status_) cuda_.pop_context(&popped);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const Functions& cuda_;
  Status status_;
};

// Its stream waits for the default stream and the default stream for it, so that a program which
// launches kernels there may rely on the order that a plain cudaMemcpy would give.
class CudaQueue final : public CopyQueue {
 public:
  CudaQueue(const Functions& cuda, Handle context) : cuda_(cuda), context_(context) {}
  ~CudaQueue() override {
    const Current current(cuda_, context_);
    for (const Handle event : events_)
      if (event != nullptr) cuda_.destroy_event(event);
    if (stream_ != nullptr) cuda_.destroy_stream(stream_);
    if (pinned_) cuda_.unregister_host(buffer().data());
  }

  Status prepare(std::uint64_t buffer_bytes) {
    SHIMA_TRY_ASSIGN(pages_, HostPages::map(buffer_bytes));
    const Current current(cuda_, context_);
    SHIMA_TRY(current.status());
    SHIMA_TRY(cuda_.check(cuda_.create_stream(&stream_, 0), "cuStreamCreate"));
    for (Handle& event : events_)
      SHIMA_TRY(cuda_.check(cuda_.create_event(&event, event_disable_timing), "cuEventCreate"));
    // Copies are right without it, and slower.
    pinned_ = cuda_.register_host(buffer().data(), buffer().size(), register_portable) == 0;
    return {};
  }

  std::span<std::byte> buffer() const override { return pages_.bytes(); }

  Status start(std::span<const StripPair> pairs) override {
    const Current current(cuda_, context_);
    SHIMA_TRY(current.status());
    for (const StripPair& pair : pairs) {
      SHIMA_TRY(copy_pieces(
          pair,
          [&](std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes) {
            return cuda_.check(cuda_.copy(to, from, len_bytes, stream_), "cuMemcpyAsync");
          },
          [&](const StripPair& rows) { return start_rows(rows); }));
    }
    return {};
  }

  Status set_mark(int mark) override {
    const Current current(cuda_, context_);
    SHIMA_TRY(current.status());
    return cuda_.check(cuda_.record_event(event(mark), stream_), "cuEventRecord");
  }

  Status wait_for(int mark) override {
    const Current current(cuda_, context_);
    SHIMA_TRY(current.status());
    return cuda_.check(cuda_.wait_for_event(event(mark)), "cuEventSynchronize");
  }

 private:
  [[nodiscard]] Handle event(int mark) const { return events_[static_cast<std::size_t>(mark)]; }

  Status start_rows(const StripPair& pair) {
    Rows rows{};
    rows.from_type = rows.to_type = type_unified;
    rows.from_device = static_cast<Address>(pair.b_offset);
    rows.from_pitch = as_unsigned(pair.b_stride_bytes);
    rows.to_device = static_cast<Address>(pair.a_offset);
    rows.to_pitch = as_unsigned(pair.a_stride_bytes);
    rows.width_bytes = pair.len_bytes;
    rows.height = pair.count;
    return cuda_.check(cuda_.copy_rows(&rows, stream_), "cuMemcpy2DAsync");
  }

  const Functions& cuda_;
  Handle context_;
  HostPages pages_;
  bool pinned_ = false;
  Handle stream_ = nullptr;
  std::array<Handle, mark_count> events_{};
};

class Cuda final : public Driver {
 public:
  explicit Cuda(const LoadedLibrary& library) : functions_(library) {}

  std::optional<DevicePlace> find(std::uintptr_t address) override {
    unsigned type = 0;
    unsigned managed = 0;
    if (functions_.get_attribute(&type, attribute_memory_type, address) != 0 || type != type_device)
      return {};
    // The driver moves managed memory to the processor that touches it.
    if (functions_.get_attribute(&managed, attribute_is_managed, address) == 0 && managed != 0)
      return {};
    Handle context = nullptr;
    int device = 0;
    functions_.get_attribute(&context, attribute_context, address);
    functions_.get_attribute(&device, attribute_device_ordinal, address);
    return DevicePlace{this, reinterpret_cast<std::uintptr_t>(context),
                       static_cast<std::uintptr_t>(device)};
  }

  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace& place,
                                                std::uint64_t buffer_bytes) override {
    if (functions_.missing != nullptr)
      return fail(Code::unsupported_operation,
                  fmt::format("a buffer in CUDA device memory: the driver has no {}; update the "
                              "driver, or copy the buffer to host memory",
                              functions_.missing));
    Handle context = reinterpret_cast<Handle>(place.context);
    if (context == nullptr) {
      SHIMA_TRY_ASSIGN(context, primary_context(static_cast<int>(place.device)));
    }
    auto queue = std::make_unique<CudaQueue>(functions_, context);
    SHIMA_TRY(queue->prepare(buffer_bytes));
    return queue;
  }

 private:
  // Memory of a pool or mapped by the program belongs to a device and not to a context.
  Result<Handle> primary_context(int device) {
    const std::lock_guard hold(lock_);
    Handle& context = primaries_[device];
    if (context == nullptr)
      SHIMA_TRY(functions_.check(functions_.retain_primary(&context, device),
                                 "cuDevicePrimaryCtxRetain"));
    return context;
  }

  Functions functions_;
  std::mutex lock_;
  std::map<int, Handle> primaries_;
};

}  // namespace

Driver* find_cuda() {
  const auto library = LoadedLibrary::find("libcuda.so", "cuPointerGetAttribute");
  return library ? new Cuda(*library) : nullptr;
}

}  // namespace shima
