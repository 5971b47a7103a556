#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace shima {

Code code_of_errno(int sys_errno) {
  switch (sys_errno) {
    case 0:
      return Code::ok;
    case ENOENT:
      return Code::no_such_file;
    case EEXIST:
      return Code::file_exists;
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return Code::bad_file_name;
    case EACCES:
    case EPERM:
      return Code::access_denied;
    case EROFS:
      return Code::read_only;
    case ENOSPC:
      return Code::no_space;
    case EDQUOT:
      return Code::quota;
    case EBUSY:
    case ETXTBSY:
      return Code::file_in_use;
    case ENOMEM:
      return Code::no_memory;
    case EINVAL:
      return Code::bad_argument;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::unsupported_operation;
    default:
      return Code::io;
  }
}

std::unexpected<Error> fail_errno(int sys_errno, std::string what) {
  return fail(code_of_errno(sys_errno), std::move(what), sys_errno);
}

const char* name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::bad_argument:
      return "bad argument";
    case Code::bad_count:
      return "bad count";
    case Code::bad_type:
      return "bad datatype";
    case Code::bad_access_mode:
      return "bad access mode";
    case Code::bad_file_name:
      return "bad file name";
    case Code::bad_file:
      return "file cannot be used";
    case Code::bad_handle:
      return "bad file handle";
    case Code::not_same:
      return "ranks gave different values";
    case Code::cancelled:
      return "cancelled";
    case Code::no_such_file:
      return "no such file";
    case Code::file_exists:
      return "file exists";
    case Code::file_in_use:
      return "file in use";
    case Code::access_denied:
      return "access denied";
    case Code::read_only:
      return "read-only";
    case Code::unsupported_operation:
      return "unsupported operation";
    case Code::unsupported_datarep:
      return "unsupported data representation";
    case Code::duplicate_datarep:
      return "data representation exists";
    case Code::conversion:
      return "data conversion failed";
    case Code::no_memory:
      return "out of memory";
    case Code::no_space:
      return "no space left";
    case Code::quota:
      return "quota exceeded";
    case Code::io:
      return "I/O error";
    case Code::timed_out:
      return "timed out";
    case Code::peer_lost:
      return "another process is lost";
    case Code::internal:
      return "internal error";
  }
  return "unknown code";
}

std::string describe(const Error& error) {
  std::string text = name_of(error.code);
  if (error.sys_errno != 0) {
    const char* symbol = strerrorname_np(error.sys_errno);
    text +=
        std::string(" (") + (symbol != nullptr ? symbol : std::to_string(error.sys_errno)) + ")";
  }
  return error.what.empty() ? text : text + ": " + error.what;
}

}  // namespace shima
