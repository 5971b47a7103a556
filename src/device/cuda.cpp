// CUDA's driver interface (libcuda.so.1), as the CUDA Driver API Reference Manual describes it.
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "device/driver.h"
#include "device/stream_queue.h"
#include "device/symbols.h"

namespace shima {
namespace {

using Address = unsigned long long;

constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr unsigned type_device = 2;
constexpr unsigned type_unified = 4;  // the driver tells by the address what lies there
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

struct CudaApi : StreamApi {
  using Place = Handle;  // a context
  class Current;

  int (*get_attribute)(void* data, int attribute, Address pointer);
  int (*push_context)(Handle context);
  int (*pop_context)(Handle* context);
  int (*retain_primary)(Handle* context, int device);
  int (*start_copy)(Address to, Address from, std::size_t len_bytes, Handle stream);
  int (*start_rows)(const Rows* rows, Handle stream);
  int (*error_text)(int error, const char** text);
  const char* missing = nullptr;

  explicit CudaApi(LoadedLibrary library) {
    library.bind(get_attribute, "cuPointerGetAttribute");
    library.bind(push_context, "cuCtxPushCurrent_v2");
    library.bind(pop_context, "cuCtxPopCurrent_v2");
    library.bind(retain_primary, "cuDevicePrimaryCtxRetain");
    bind(library, {.register_host = "cuMemHostRegister_v2",
                   .unregister_host = "cuMemHostUnregister",
                   .create_stream = "cuStreamCreate",
                   .destroy_stream = "cuStreamDestroy_v2",
                   .create_event = "cuEventCreate",
                   .record_event = "cuEventRecord",
                   .wait_for_event = "cuEventSynchronize",
                   .destroy_event = "cuEventDestroy_v2"});
    library.bind(start_copy, "cuMemcpyAsync");
    library.bind(start_rows, "cuMemcpy2DAsync_v2");
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

  [[nodiscard]] Status copy(std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes,
                            Handle stream) const {
    return check(start_copy(to, from, len_bytes, stream), "cuMemcpyAsync");
  }

  [[nodiscard]] Status copy_rows(const StripPair& pair, Handle stream) const {
    Rows rows{};
    rows.from_type = rows.to_type = type_unified;
    rows.from_device = static_cast<Address>(pair.b_offset);
    rows.from_pitch = as_unsigned(pair.b_stride_bytes);
    rows.to_device = static_cast<Address>(pair.a_offset);
    rows.to_pitch = as_unsigned(pair.a_stride_bytes);
    rows.width_bytes = pair.len_bytes;
    rows.height = pair.count;
    return check(start_rows(&rows, stream), "cuMemcpy2DAsync");
  }
};

// Makes a context the calling thread's for a while.
class CudaApi::Current {
 public:
  Current(const CudaApi& cuda, Handle context)
      : cuda_(cuda), status_(cuda.check(cuda.push_context(context), "cuCtxPushCurrent")) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Handle popped = nullptr;
    if (status_) cuda_.pop_context(&popped);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const CudaApi& cuda_;
  Status status_;
};

class Cuda final : public Driver {
 public:
  explicit Cuda(const LoadedLibrary& library) : api_(library) {}

  std::optional<DevicePlace> find(std::uintptr_t address) override {
    unsigned type = 0;
    unsigned managed = 0;
    if (api_.get_attribute(&type, attribute_memory_type, address) != 0 || type != type_device)
      return {};
    // The driver moves managed memory to the processor that touches it.
    if (api_.get_attribute(&managed, attribute_is_managed, address) == 0 && managed != 0) return {};
    Handle context = nullptr;
    int device = 0;
    api_.get_attribute(&context, attribute_context, address);
    api_.get_attribute(&device, attribute_device_ordinal, address);
    return DevicePlace{this, reinterpret_cast<std::uintptr_t>(context),
                       static_cast<std::uintptr_t>(device)};
  }

  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace& place,
                                                std::uint64_t buffer_bytes) override {
    if (api_.missing != nullptr)
      return fail(Code::unsupported_operation,
                  fmt::format("a buffer in CUDA device memory: the driver has no {}; update the "
                              "driver, or copy the buffer to host memory",
                              api_.missing));
    Handle context = reinterpret_cast<Handle>(place.context);
    if (context == nullptr) {
      SHIMA_TRY_ASSIGN(context, primary_context(static_cast<int>(place.device)));
    }
    return StreamQueue<CudaApi>::open(api_, context, buffer_bytes);
  }

 private:
  // Memory of a pool or mapped by the program belongs to a device and not to a context.
  Result<Handle> primary_context(int device) {
    const std::lock_guard hold(lock_);
    Handle& context = primaries_[device];
    if (context == nullptr)
      SHIMA_TRY(api_.check(api_.retain_primary(&context, device), "cuDevicePrimaryCtxRetain"));
    return context;
  }

  CudaApi api_;
  std::mutex lock_;
  std::map<int, Handle> primaries_;
};

}  // namespace

Driver* find_cuda() {
  const auto library = LoadedLibrary::find("libcuda.so", "cuPointerGetAttribute");
  return library ? new Cuda(*library) : nullptr;
}

}  // namespace shima
