#include "capi/dse/errors.h"

#include "capi/last_message.h"
#include "shima/dse.h"

namespace shima::capi {
namespace {

thread_local LastMessage last_message{};

int number_of(Code code) {
  switch (code) {
    case Code::bad_handle:
      return DSE_ERR_NOT_A_TASK;
    case Code::bad_count:
      return DSE_ERR_NO_NEIGHBOR;
    case Code::not_same:
      return DSE_ERR_NOT_SAME;
    case Code::peer_lost:
      return DSE_ERR_LOST;
    case Code::no_memory:
      return DSE_ERR_NO_MEMORY;
    case Code::internal:
      return DSE_ERR_INTERNAL;
    default:
      return DSE_ERR_ARGUMENT;
  }
}

}  // namespace

int report_dse(const Error& error) {
  remember_text(last_message, error);
  return number_of(error.code);
}

}  // namespace shima::capi

const char* dse_error_message() noexcept { return shima::capi::last_message.data(); }
