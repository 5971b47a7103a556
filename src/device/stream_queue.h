// CopyQueue for drivers with CUDA's model: streams, events, and a device or context that is current
// in the calling thread. HIP declares the same functions under other names.
//
// `Api` derives from StreamApi and provides the differences:
//   Place                                a device or a context
//   Current(api, place)                  makes it current while in scope; status() tells whether
//   check(error, function)               the Status for an error number of the driver
//   copy(to, from, len_bytes, stream)    starts a contiguous copy
//   copy_rows(pair, stream)              starts a copy of rows
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "device/driver.h"
#include "device/host_pages.h"
#include "device/pieces.h"
#include "device/symbols.h"

namespace shima {

using Handle = void*;

struct StreamNames {
  const char* register_host;
  const char* unregister_host;
  const char* create_stream;
  const char* destroy_stream;
  const char* create_event;
  const char* record_event;
  const char* wait_for_event;
  const char* destroy_event;
};

// Functions that all these drivers declare identically, and their symbols, which messages name.
struct StreamApi {
  StreamNames names{};
  int (*register_host)(void* address, std::size_t len_bytes, unsigned flags);
  int (*unregister_host)(void* address);
  int (*create_stream)(Handle* stream, unsigned flags);
  int (*destroy_stream)(Handle stream);
  int (*create_event)(Handle* event, unsigned flags);
  int (*record_event)(Handle event, Handle stream);
  int (*wait_for_event)(Handle event);
  int (*destroy_event)(Handle event);

  void bind(LoadedLibrary& library, const StreamNames& symbols) {
    names = symbols;
    library.bind(register_host, names.register_host);
    library.bind(unregister_host, names.unregister_host);
    library.bind(create_stream, names.create_stream);
    library.bind(destroy_stream, names.destroy_stream);
    library.bind(create_event, names.create_event);
    library.bind(record_event, names.record_event);
    library.bind(wait_for_event, names.wait_for_event);
    library.bind(destroy_event, names.destroy_event);
  }
};

// Its stream waits for the default stream and the default stream for it, so that a program that
// launches kernels there can rely on the order that a plain cudaMemcpy has.
template <class Api>
class StreamQueue final : public CopyQueue {
 public:
  using Place = typename Api::Place;

  [[nodiscard]] static Result<std::unique_ptr<CopyQueue>> open(const Api& api, Place place,
                                                               std::uint64_t buffer_bytes) {
    std::unique_ptr<StreamQueue> queue(new StreamQueue(api, place));
    SHIMA_TRY(queue->prepare(buffer_bytes));
    return queue;
  }

  ~StreamQueue() override {
    const Current current(api_, place_);
    for (const Handle event : events_)
      if (event != nullptr) api_.destroy_event(event);
    if (stream_ != nullptr) api_.destroy_stream(stream_);
    if (pinned_) api_.unregister_host(buffer().data());
  }

  std::span<std::byte> buffer() const override { return pages_.bytes(); }

  Status start(std::span<const StripPair> pairs) override {
    const Current current(api_, place_);
    SHIMA_TRY(current.status());
    for (const StripPair& pair : pairs) {
      SHIMA_TRY(copy_pieces(
          pair,
          [&](std::uintptr_t to, std::uintptr_t from, std::uint64_t len_bytes) {
            return api_.copy(to, from, len_bytes, stream_);
          },
          [&](const StripPair& rows) { return api_.copy_rows(rows, stream_); }));
    }
    return {};
  }

  Status set_mark(int mark) override {
    const Current current(api_, place_);
    SHIMA_TRY(current.status());
    return api_.check(api_.record_event(event(mark), stream_), api_.names.record_event);
  }

  Status wait_for(int mark) override {
    const Current current(api_, place_);
    SHIMA_TRY(current.status());
    return api_.check(api_.wait_for_event(event(mark)), api_.names.wait_for_event);
  }

 private:
  using Current = typename Api::Current;
  static constexpr unsigned register_portable = 1;
  static constexpr unsigned event_disable_timing = 2;

  StreamQueue(const Api& api, Place place) : api_(api), place_(place) {}

  Status prepare(std::uint64_t buffer_bytes) {
    SHIMA_TRY_ASSIGN(pages_, HostPages::map(buffer_bytes));
    const Current current(api_, place_);
    SHIMA_TRY(current.status());
    SHIMA_TRY(api_.check(api_.create_stream(&stream_, 0), api_.names.create_stream));
    for (Handle& event : events_)
      SHIMA_TRY(
          api_.check(api_.create_event(&event, event_disable_timing), api_.names.create_event));
    // Without it, copies are correct but slower.
    pinned_ = api_.register_host(buffer().data(), buffer().size(), register_portable) == 0;
    return {};
  }

  [[nodiscard]] Handle event(int mark) const { return events_[static_cast<std::size_t>(mark)]; }

  const Api& api_;
  Place place_;
  HostPages pages_;
  bool pinned_ = false;
  Handle stream_ = nullptr;
  std::array<Handle, mark_count> events_{};
};

}  // namespace shima
