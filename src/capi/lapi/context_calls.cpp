// Calls on contexts, counters, addresses and the environment.
#include <fmt/format.h>

#include <climits>
#include <cstring>

#include "base/log.h"
#include "capi/lapi/checks.h"
#include "lapi/way/message.h"
#include "observe/board.h"

namespace {

using namespace shima::capi;
using shima::Doing;
using shima::ShortCall;
using shima::lapi::Handlers;

LapiStatus check_counter(const lapi_cntr_t* counter) {
  if (counter == nullptr) return refuse(LAPI_ERR_CNTR_NULL, "the counter is NULL");
  return {};
}

LapiStatus check_index(int index) {
  if (index > 0 && index < Handlers::most) return {};
  return refuse(
      LAPI_ERR_ADDR_HNDL_RANGE,
      fmt::format("index {} of a handler is not between 1 and {}", index, Handlers::most - 1));
}

LapiStatus check_result(const void* result) {
  if (result != nullptr) return {};
  return refuse(LAPI_ERR_RET_PTR_NULL, "the pointer for the result is NULL");
}

int int_or_most(std::uint64_t value) { return value > INT_MAX ? INT_MAX : static_cast<int>(value); }

std::expected<int, LapiError> query_value(LapiContext& context, lapi_query_t query) {
  constexpr int not_measured = 0;
  switch (query) {
    case TASK_ID:
      return context.engine->task();
    case NUM_TASKS:
      return context.engine->tasks();
    case MAX_UHDR_SZ:
      return int_or_most(shima::lapi::most_user_header_bytes);
    case MAX_DATA_SZ:
      return int_or_most(LAPI_MAX_MSG_SZ);
    case ERROR_CHK:
      return context.checks ? 1 : 0;
    case TIMEOUT:
      return context.timeout_s;
    case MIN_TIMEOUT:
      return 10;
    case MAX_TIMEOUT:
      return 86400;
    case INTERRUPT_SET:
      return context.engine->interrupts() ? 1 : 0;
    case MAX_PKT_SZ:
      return int_or_most(shima::lapi::Engine::packet_bytes);
    case LOC_ADDRTBL_SZ:
      return Handlers::most;
    case RCV_FIFO_SIZE:
      return int_or_most(shima::lapi::ByteRing::capacity_bytes);
    case MAX_PORTS:
    case QUERY_SHM_ENABLED:
      return 1;
    case QUERY_SHM_NUM_TASKS:
      return context.engine->tasks();
    case MAX_ATOM_SIZE:
      return 8;
    case NUM_REX_BUFS:
    case REX_BUF_SZ:
    case EPOCH_NUM:
    case USE_THRESH:
    case BUF_CP_SIZE:
    case MAX_PKTS_OUT:
    case ACK_THRESHOLD:
    case BULK_XFER:
    case BULK_MIN_MSG_SIZE:
      return not_measured;
    default:
      break;
  }
  return refuse(LAPI_ERR_QUERY_TYPE,
                fmt::format("query {} is unknown, or has no value here", static_cast<int>(query)));
}

LapiStatus check_flag(int value) {
  if (value == 0 || value == 1) return {};
  return refuse(LAPI_ERR_SET_VAL, fmt::format("the value {} is neither 0 nor 1", value));
}

LapiStatus set_value(LapiContext& context, lapi_query_t query, int value) {
  switch (query) {
    case ERROR_CHK:
      LAPI_TRY(check_flag(value));
      context.checks = value != 0;
      return {};
    case INTERRUPT_SET:
      LAPI_TRY(check_flag(value));
      context.engine->set_interrupts(value != 0);
      return {};
    case TIMEOUT:
      if (value < 10 || value > 86400)
        return refuse(LAPI_ERR_SET_VAL,
                      fmt::format("TIMEOUT {} is not between 10 and 86400 seconds", value));
      context.timeout_s = value;
      return {};
    case USE_THRESH:
    case BULK_XFER:
    case BULK_MIN_MSG_SIZE:
    case BUF_CP_SIZE:
    case MAX_PKTS_OUT:
    case ACK_THRESHOLD:
      return {};  // of adapters: accepted, without effect
    default:
      return refuse(LAPI_ERR_QUERY_TYPE,
                    fmt::format("query {} cannot be set", static_cast<int>(query)));
  }
}

// What a trace has of a call that waits.
auto waiting(shima::CallCode code, const void* site, const int* task = nullptr) {
  return [=] { return ShortCall{.place = {code, site}, .task = task != nullptr ? *task : -1}; };
}

int wait_for_counter(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur,
                     const void* site) noexcept {
  return with_context(hndl, [cntr, val, cur, site](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_counter(cntr));
    if (context.checks && val <= 0)
      return refuse(LAPI_ERR_CNTR_VAL,
                    fmt::format("waiting for the value {}: it must be positive", val));
    const Doing now(shima::call::lapi_wait_counter);
    // The task that has made a counter grow last is the one waited for.
    const auto described = [&] {
      return ShortCall{.place = {shima::call::lapi_wait_counter, site},
                       .task = shima::lapi::last_source(*cntr)};
    };
    const auto waited = traced(
        context, described, [&] { return translated(context.engine->wait_counter(*cntr, val)); });
    if (cur != nullptr) *cur = shima::lapi::value_of(*cntr);
    return waited;
  });
}

int exchange_addresses(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t* add_tab,
                       const void* site) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    if (add_tab == nullptr)
      return refuse(LAPI_ERR_ADDR_TBL_NULL, "LAPI_Address_init: the table is NULL");
    const Doing now(shima::call::lapi_address_init);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(context.engine->tasks()));
    LAPI_TRY(traced(context, waiting(shima::call::lapi_address_init, site),
                    [&] { return translated(context.engine->gather(my_addr, all)); }));
    std::copy(all.begin(), all.end(), add_tab);
    return {};
  });
}

}  // namespace

int LAPI_Init(lapi_handle_t* hndl, lapi_info_t* lapi_info) noexcept {
  try {
    if (hndl == nullptr)
      return report_lapi(LapiError{LAPI_ERR_RET_PTR_NULL, "LAPI_Init: hndl is NULL"});
    if (lapi_info == nullptr)
      return report_lapi(LapiError{
          LAPI_ERR_INFO_NULL, "LAPI_Init: lapi_info is NULL; pass a lapi_info_t that is zero"});
    const auto opened = open_context(*lapi_info, __builtin_return_address(0));
    if (!opened) {
      shima::log(shima::LogLevel::error, "{}", opened.error().what);
      return report_lapi(opened.error());
    }
    *hndl = *opened;
    return LAPI_SUCCESS;
  } catch (const std::exception& exception) {
    return report_lapi(shima::Error{shima::Code::no_memory, 0, exception.what()});
  }
}

int LAPI_Term(lapi_handle_t hndl) noexcept {
  try {
    const HeldContext held(hndl);
    if (held.get() == nullptr) return report_lapi(no_context(hndl));
    const auto finished =
        traced(*held.get(), waiting(shima::call::lapi_term, __builtin_return_address(0)),
               [&] { return translated(held.get()->engine->finish()); });
    if (!finished && finished.error().code == LAPI_ERR_IN_HANDLER)
      return report_lapi(finished.error());
    if (!close_context(hndl)) return report_lapi(no_context(hndl));
    while (held.get()->engine->unlock_dispatcher()) {  // the context's helper may wait for it
    }
    held.get()->engine->leave_now();
    return LAPI_SUCCESS;
  } catch (const std::exception& exception) {
    return report_lapi(shima::Error{shima::Code::internal, 0, exception.what()});
  }
}

int LAPI_Msg_string(int error_code, void* buf) noexcept {
  if (buf == nullptr) return LAPI_ERR_RET_PTR_NULL;
  auto* out = static_cast<char*>(buf);
  const char* text = text_of_lapi(error_code);
  std::snprintf(out, LAPI_MAX_ERR_STRING, "%s", text != nullptr ? text : "unknown code");
  return text != nullptr ? LAPI_SUCCESS : LAPI_ERR_CODE_UNKNOWN;
}

int LAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int* ret_val) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_result(ret_val));
    const auto value = query_value(context, query);
    if (!value) return std::unexpected(value.error());
    *ret_val = *value;
    return {};
  });
}

int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val) noexcept {
  return with_context(hndl,
                      [&](LapiContext& context) { return set_value(context, query, set_val); });
}

int LAPI_Address(void* my_addr, ulong* ret_addr) noexcept {
  if (ret_addr == nullptr) return LAPI_ERR_RET_PTR_NULL;
  *ret_addr = reinterpret_cast<ulong>(my_addr);
  return LAPI_SUCCESS;
}

int LAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t* add_tab) noexcept {
  return exchange_addresses(hndl, my_addr, add_tab, __builtin_return_address(0));
}

int LAPI_Address_init(lapi_handle_t hndl, void* my_addr, void* add_tab[]) noexcept {
  return exchange_addresses(hndl, reinterpret_cast<lapi_long_t>(my_addr),
                            reinterpret_cast<lapi_long_t*>(add_tab), __builtin_return_address(0));
}

int LAPI_Addr_set(lapi_handle_t hndl, void* addr, int addr_hndl) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_index(addr_hndl));
    context.engine->handlers().set(addr_hndl, addr);
    return {};
  });
}

int LAPI_Addr_get(lapi_handle_t hndl, void** addr, int addr_hndl) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_index(addr_hndl));
    LAPI_TRY(check_result(addr));
    *addr = context.engine->handlers().get(addr_hndl);
    return {};
  });
}

int LAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_counter(cntr));
    context.engine->set_counter(*cntr, val);
    return {};
  });
}

int LAPI_Getcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int* val) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    LAPI_TRY(check_counter(cntr));
    LAPI_TRY(check_result(val));
    context.engine->probe(cntr);
    *val = shima::lapi::value_of(*cntr);
    return {};
  });
}

int LAPI_Waitcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur) noexcept {
  return wait_for_counter(hndl, cntr, val, cur, __builtin_return_address(0));
}

int LAPI_Nopoll_wait(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur) noexcept {
  return wait_for_counter(hndl, cntr, val, cur, __builtin_return_address(0));
}

int LAPI_Probe(lapi_handle_t hndl) noexcept {
  return with_context(hndl, [](LapiContext& context) -> LapiStatus {
    context.engine->probe();
    return {};
  });
}

int LAPI_Msgpoll(lapi_handle_t hndl, uint cnt, lapi_msg_info_t* info) noexcept {
  return with_context(hndl, [&](LapiContext& context) -> LapiStatus {
    if (info == nullptr) return refuse(LAPI_ERR_MSG_INFO_NULL, "LAPI_Msgpoll: info is NULL");
    info->status = context.engine->poll_messages(cnt);
    return {};
  });
}

int LAPI_Fence(lapi_handle_t hndl) noexcept {
  const void* const site = __builtin_return_address(0);
  return with_context(hndl, [&](LapiContext& context) {
    const Doing now(shima::call::lapi_fence);
    int task = -1;
    return traced(context, waiting(shima::call::lapi_fence, site, &task),
                  [&] { return translated(context.engine->fence(&task)); });
  });
}

int LAPI_Gfence(lapi_handle_t hndl) noexcept {
  const void* const site = __builtin_return_address(0);
  return with_context(hndl, [&](LapiContext& context) {
    const Doing now(shima::call::lapi_global_fence);
    return traced(context, waiting(shima::call::lapi_global_fence, site),
                  [&] { return translated(context.engine->global_fence()); });
  });
}
