#include "capi/pff/errors.h"

#include "capi/last_message.h"
#include "shima/pff.h"

namespace shima::capi {
namespace {

thread_local LastMessage last_message{};

int number_of(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::bad_argument:
    case Code::bad_count:
    case Code::bad_type:
    case Code::bad_handle:
      return PFF_ERR_ARGUMENT;
    case Code::bad_access_mode:
      return PFF_ERR_MODE;
    case Code::bad_file_name:
      return PFF_ERR_NAME;
    case Code::bad_file:
      return PFF_ERR_FILE;
    case Code::not_same:
      return PFF_ERR_NOT_SAME;
    case Code::cancelled:
      return PFF_ERR_CANCELLED;
    case Code::no_such_file:
      return PFF_ERR_NO_SUCH_FILE;
    case Code::file_exists:
      return PFF_ERR_EXISTS;
    case Code::file_in_use:
      return PFF_ERR_IN_USE;
    case Code::access_denied:
      return PFF_ERR_ACCESS;
    case Code::read_only:
      return PFF_ERR_READ_ONLY;
    case Code::unsupported_operation:
    case Code::unsupported_datarep:
    case Code::duplicate_datarep:
    case Code::conversion:
      return PFF_ERR_UNSUPPORTED;
    case Code::no_memory:
      return PFF_ERR_NO_MEMORY;
    case Code::no_space:
      return PFF_ERR_NO_SPACE;
    case Code::quota:
      return PFF_ERR_QUOTA;
    case Code::io:
      return PFF_ERR_IO;
    case Code::timed_out:
      return PFF_ERR_TIMEOUT;
    case Code::peer_lost:
      return PFF_ERR_PEER_LOST;
    case Code::internal:
      break;
  }
  return PFF_ERR_INTERNAL;
}

}  // namespace

int report(const Error& error) {
  remember(last_message, error);
  return number_of(error.code);
}

}  // namespace shima::capi

const char* pff_error_message() noexcept { return shima::capi::last_message.data(); }
