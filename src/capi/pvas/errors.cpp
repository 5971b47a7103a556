#include "capi/pvas/errors.h"

#include "capi/last_message.h"
#include "shima/pvas.h"

namespace shima::capi {
namespace {

thread_local LastMessage last_message{};

int number_of(Code code) {
  switch (code) {
    case Code::bad_argument:
    case Code::bad_count:
      return PVAS_ERR_ARGUMENT;
    case Code::bad_handle:
      return PVAS_ERR_NOT_A_TASK;
    case Code::unsupported_operation:
      return PVAS_ERR_PROGRAM;
    case Code::no_such_file:
    case Code::bad_file_name:
      return PVAS_ERR_NO_SUCH_FILE;
    case Code::file_exists:
      return PVAS_ERR_EXISTS;
    case Code::access_denied:
      return PVAS_ERR_ACCESS;
    case Code::no_memory:
      return PVAS_ERR_NO_MEMORY;
    case Code::timed_out:
      return PVAS_ERR_TIMEOUT;
    case Code::peer_lost:
      return PVAS_ERR_LOST;
    case Code::internal:
      return PVAS_ERR_INTERNAL;
    default:
      return PVAS_ERR_IO;
  }
}

}  // namespace

int report_pvas(const Error& error) {
  remember(last_message, error);
  return number_of(error.code);
}

}  // namespace shima::capi

const char* pvas_error_message() noexcept { return shima::capi::last_message.data(); }
