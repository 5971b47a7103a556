// The contexts of this process, by handle; and the errors of its calls.
#pragma once

#include <lapi.h>

#include <atomic>
#include <memory>

#include "lapi/engine.h"

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
};

using Context = std::shared_ptr<LapiContext>;
[[nodiscard]] std::expected<lapi_handle_t, LapiError> open_context(const lapi_info_t& info);
[[nodiscard]] std::expected<Context, LapiError> context_of(lapi_handle_t handle);
// The handle is invalid afterwards.
[[nodiscard]] std::expected<Context, LapiError> take_context(lapi_handle_t handle);

// Keeps the thread's last error; returns its code.
int report_lapi(const LapiError& error) noexcept;
int report_lapi(const Error& error) noexcept;
// The text for a code: of the thread's last error, if it has this code. Null for an unknown code.
[[nodiscard]] const char* text_of_lapi(int code) noexcept;

// Runs the body of an entry point, which gets the context.
template <class Body>
int with_context(lapi_handle_t handle, Body body) noexcept {
  try {
    const auto context = context_of(handle);
    if (!context) return report_lapi(context.error());
    const auto done = body(**context);
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

}  // namespace shima::capi
