#include "capi/dsm/errors.h"

#include "capi/last_message.h"
#include "shima/dsm.h"

namespace shima::capi {
namespace {

thread_local LastMessage last_message{};

int number_of(Code code) {
  switch (code) {
    case Code::bad_argument:
    case Code::not_same:
      return DSM_ERR_ARGUMENT;
    case Code::bad_handle:
      return DSM_ERR_NOT_A_TASK;
    case Code::bad_count:
      return DSM_ERR_ADDRESS;
    case Code::access_denied:
      return DSM_ERR_VIOLATION;
    case Code::no_memory:
    case Code::no_space:
      return DSM_ERR_NO_MEMORY;
    case Code::peer_lost:
      return DSM_ERR_LOST;
    case Code::timed_out:
      return DSM_ERR_TIMEOUT;
    case Code::internal:
      return DSM_ERR_INTERNAL;
    default:
      return DSM_ERR_IO;
  }
}

}  // namespace

int report_dsm(const Error& error) {
  remember_text(last_message, error);
  return number_of(error.code);
}

}  // namespace shima::capi

const char* dsm_error_message() noexcept { return shima::capi::last_message.data(); }
