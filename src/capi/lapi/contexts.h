// The contexts of this process, by handle; and the errors of its calls.
//
// A call finds its context without a lock: the thread counts, in memory of its own, the calls that
// use a context. LAPI_Term takes the context off the table, and it is deleted once no thread counts
// a call on it. The order between a thread's count and its look at the table is enforced by
// LAPI_Term (membarrier(2)), so that a call needs no atomic operation; where the kernel has no such
// call, by every call.
#pragma once

#include <lapi.h>

#include <atomic>
#include <memory>

#include "lapi/engine.h"
#include "observe/trace_runs.h"

namespace shima::capi {

// An error of the interface: a code of lapi.h, and what LAPI_Msg_string says about it.
struct LapiError {
  int code = LAPI_ERR_UNKNOWN;
  std::string what;
};
using LapiStatus = std::expected<void, LapiError>;

[[nodiscard]] inline std::unexpected<LapiError> refuse(int code, std::string what) {
  return std::unexpected(LapiError{code, std::move(what)});
}

struct LapiContext {
  std::unique_ptr<lapi::Engine> engine;
  std::atomic<bool> checks{true};   // ERROR_CHK
  std::atomic<int> timeout_s{900};  // TIMEOUT: only remembered
  bool is_programs = true;          // not of a library of Shima, which traces its own calls
};

// Keeps a context alive during a call.
class HeldContext {
 public:
  explicit HeldContext(lapi_handle_t handle);
  HeldContext(const HeldContext&) = delete;
  HeldContext& operator=(const HeldContext&) = delete;
  ~HeldContext();
  // Null if the handle is not that of a context.
  [[nodiscard]] LapiContext* get() const { return context_; }

 private:
  std::atomic<std::uint32_t>* uses_ = nullptr;
  LapiContext* context_ = nullptr;
};

// `caller`: an address in the code that opens it.
[[nodiscard]] std::expected<lapi_handle_t, LapiError> open_context(const lapi_info_t& info,
                                                                   const void* caller);
// What is wrong with a handle that is not that of a context.
[[nodiscard]] LapiError no_context(lapi_handle_t handle);
// The handle is invalid afterwards. False if it was before.
[[nodiscard]] bool close_context(lapi_handle_t handle);

// Keeps the thread's last error; returns its code.
int report_lapi(const LapiError& error) noexcept;
int report_lapi(const Error& error) noexcept;
// The text for a code: of the thread's last error, if it has this code. Null for an unknown code.
[[nodiscard]] const char* text_of_lapi(int code) noexcept;

// Runs the body of an entry point, which gets the context.
template <class Body>
int with_context(lapi_handle_t handle, const Body& body) noexcept {
  try {
    const HeldContext held(handle);
    if (held.get() == nullptr) return report_lapi(no_context(handle));
    const auto done = body(*held.get());
    return done ? LAPI_SUCCESS : report_lapi(done.error());
  } catch (const std::bad_alloc&) {
    return report_lapi(Error{Code::no_memory, 0, "out of memory"});
  } catch (const std::exception& exception) {
    return report_lapi(Error{Code::internal, 0, exception.what()});
  }
}

// An engine's error as one of the interface.
[[nodiscard]] LapiError translate(const Error& error);
[[nodiscard]] inline LapiStatus translated(const Status& status) {
  if (status) return {};
  return std::unexpected(translate(status.error()));
}

// Runs a part of a call that reaches other tasks, and traces it. `describe` returns a ShortCall.
template <class Describe, class Body>
LapiStatus traced(const LapiContext& context, Describe describe, Body body) {
  return traced_if(is_traced() && context.is_programs, describe, body);
}

}  // namespace shima::capi
