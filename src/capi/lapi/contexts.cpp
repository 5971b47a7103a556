#include "capi/lapi/contexts.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/log.h"
#include "capi/lapi/held_context.h"
#include "observe/board.h"
#include "observe/trace_clock.h"

namespace shima::capi {
namespace {

using lapi::Engine;

struct Contexts {
  std::mutex mutex;
  int opened = 0;
  pid_t process = 0;
};

// Never destroyed: threads of the program may call in until the process ends.
Contexts& contexts() {
  static auto* const made = new Contexts;
  return *made;
}

// A process that exits without LAPI_Term leaves the job; one that is killed is lost.
void leave_at_exit() {
  Contexts& known = contexts();
  if (known.process != ::getpid()) return;  // a child of fork
  for (lapi_handle_t number = 0; number < lapi::contexts_of_job; ++number) {
    const HeldContext held(handle_mark + number);
    if (held.get() != nullptr) held.get()->engine->leave_now();
  }
  wait_until_deleted();
}

// Whether code is not of a library of Shima, such as that of distributed shared memory.
bool is_of_program(const void* code) {
  Dl_info module{};
  if (::dladdr(code, &module) == 0 || module.dli_fname == nullptr) return true;
  std::string_view name = module.dli_fname;
  name.remove_prefix(name.rfind('/') + 1);  // no '/': npos + 1 is 0
  return !name.starts_with("libshima-");
}

Result<std::unique_ptr<LapiContext>> make_context(int number, const lapi_info_t& info,
                                                  const void* caller) {
  auto context = std::make_unique<LapiContext>();
  context->is_programs = is_of_program(caller);
  SHIMA_TRY_ASSIGN(auto ways, lapi::Ways::from_environment(number));
  log_set_rank(ways->task());
  show_board({.kind = BoardKind::lapi, .rank = ways->task(), .tasks = ways->tasks()});
  if (context->is_programs) start_trace(ways->task(), ways->tasks());
  SHIMA_TRY_ASSIGN(
      context->engine,
      Engine::start(std::move(ways), {.handle = handle_mark + static_cast<lapi_handle_t>(number),
                                      .completion_threads = info.num_compl_hndlr_thr,
                                      .on_error = info.err_hndlr}));
  return context;
}

LapiError refused_start(const Error& error) {
  LapiError refused = translate(error);
  if (refused.code == LAPI_ERR_NOT_STARTED) refused.what = error.what;
  refused.what = "LAPI_Init: " + refused.what;
  return refused;
}

}  // namespace

std::expected<lapi_handle_t, LapiError> open_context(const lapi_info_t& info, const void* caller) {
  const std::uint64_t begun_ns = trace::now_ns();
  Contexts& known = contexts();
  const std::lock_guard hold(known.mutex);
  if (known.opened == lapi::contexts_of_job)
    return refuse(LAPI_ERR_ALL_HNDL_IN_USE,
                  fmt::format("LAPI_Init: a process may call it {} times; use one context for more "
                              "purposes",
                              lapi::contexts_of_job));
  auto made = make_context(known.opened, info, caller);
  if (!made) return std::unexpected(refused_start(made.error()));
  if (known.opened == 0) {
    known.process = ::getpid();
    std::atexit(leave_at_exit);
  }
  if (is_traced() && (*made)->is_programs)
    trace::end({.place = {call::lapi_init, caller}}, begun_ns, false);
  const auto number = static_cast<std::size_t>(known.opened++);
  show_context(number, *std::move(made));
  return handle_mark + static_cast<lapi_handle_t>(number);
}

LapiError no_context(lapi_handle_t handle) {
  return {
      LAPI_ERR_HNDL_INVALID,
      fmt::format("{:#x} is not the handle of a context: use what LAPI_Init has stored, and not "
                  "after LAPI_Term",
                  handle)};
}

bool close_context(lapi_handle_t handle) { return hide_context(handle - handle_mark); }

}  // namespace shima::capi
