// HIP's runtime (libamdhip64.so), as the HIP Runtime API Reference describes it.
#include <fmt/format.h>

#include "device/driver.h"
#include "device/stream_queue.h"
#include "device/symbols.h"

namespace shima {
namespace {

constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr int first_version_with_cuda_numbers = 60000000;  // ROCm 6.0
constexpr int copy_default = 4;  // the runtime tells by the addresses what lies where
constexpr int error_out_of_memory = 2;

struct HipApi : StreamApi {
  using Place = int;  // a device
  class Current;

  int (*get_attribute)(void* data, int attribute, void* pointer);
  int (*version)(int* version);
  int (*get_device)(int* device);
  int (*set_device)(int device);
  int (*peek_at_last_error)();
  int (*get_last_error)();
  int (*start_copy)(void* to, const void* from, std::size_t len_bytes, int kind, Handle stream);
  int (*start_rows)(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                    std::size_t width_bytes, std::size_t height, int kind, Handle stream);
  const char* (*error_text)(int error);
  const char* missing = nullptr;

  explicit HipApi(LoadedLibrary library) {
    library.bind(get_attribute, "hipPointerGetAttribute");
    library.bind(version, "hipRuntimeGetVersion");
    library.bind(get_device, "hipGetDevice");
    library.bind(set_device, "hipSetDevice");
    library.bind(peek_at_last_error, "hipPeekAtLastError");
    library.bind(get_last_error, "hipGetLastError");
    bind(library, {.register_host = "hipHostRegister",
                   .unregister_host = "hipHostUnregister",
                   .create_stream = "hipStreamCreateWithFlags",
                   .destroy_stream = "hipStreamDestroy",
                   .create_event = "hipEventCreateWithFlags",
                   .record_event = "hipEventRecord",
                   .wait_for_event = "hipEventSynchronize",
                   .destroy_event = "hipEventDestroy"});
    library.bind(start_copy, "hipMemcpyAsync");
    library.bind(start_rows, "hipMemcpy2DAsync");
    library.bind(error_text, "hipGetErrorString");
    missing = library.missing();
  }

  [[nodiscard]] Status check(int error, const char* function) const {
    if (error == 0) return {};
    return fail(error == error_out_of_memory ? Code::no_memory : Code::io,
                fmt::format("a buffer in HIP device memory: {} failed: {} (HIP error {})", function,
                            error_text(error), error));
  }

  [[nodiscard]] Status copy(std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes,
                            Handle stream) const {
    return check(start_copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), len_bytes,
                            copy_default, stream),
                 "hipMemcpyAsync");
  }

  [[nodiscard]] Status copy_rows(const StripPair& pair, Handle stream) const {
    return check(
        start_rows(reinterpret_cast<void*>(pair.a_offset), as_unsigned(pair.a_stride_bytes),
                   reinterpret_cast<void*>(pair.b_offset), as_unsigned(pair.b_stride_bytes),
                   pair.len_bytes, pair.count, copy_default, stream),
        "hipMemcpy2DAsync");
  }
};

// Keeps errors of our calls out of the calling thread's last error, which the program may ask for.
class OwnErrors {
 public:
  explicit OwnErrors(const HipApi& hip) : hip_(hip), clean_(hip.peek_at_last_error() == 0) {}
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;
  ~OwnErrors() {
    if (clean_) hip_.get_last_error();
  }

 private:
  const HipApi& hip_;
  bool clean_;
};

// Makes a device the calling thread's for a while.
class HipApi::Current {
 public:
  Current(const HipApi& hip, int device) : hip_(hip), errors_(hip) {
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
  const HipApi& hip_;
  OwnErrors errors_;  // outlives the destructor's call
  int previous_ = 0;
  bool selected_ = false;
  Status status_;
};

class Hip final : public Driver {
 public:
  explicit Hip(const LoadedLibrary& library) : api_(library) {
    int version = 0;
    if (usable()) api_.version(&version);
    type_device_ = version >= first_version_with_cuda_numbers ? 2 : 1;
  }

  [[nodiscard]] bool usable() const { return api_.missing == nullptr; }

  std::optional<DevicePlace> find(std::uintptr_t address) override {
    const OwnErrors errors(api_);  // host memory is an error to HIP
    auto* const pointer = reinterpret_cast<void*>(address);
    unsigned type = 0;
    unsigned managed = 0;
    int device = 0;
    if (api_.get_attribute(&type, attribute_memory_type, pointer) != 0 || type != type_device_)
      return {};
    if (api_.get_attribute(&managed, attribute_is_managed, pointer) == 0 && managed != 0) return {};
    if (api_.get_attribute(&device, attribute_device_ordinal, pointer) != 0) return {};
    return DevicePlace{this, 0, static_cast<std::uintptr_t>(device)};
  }

  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace& place,
                                                std::uint64_t buffer_bytes) override {
    return StreamQueue<HipApi>::open(api_, static_cast<int>(place.device), buffer_bytes);
  }

 private:
  HipApi api_;
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
