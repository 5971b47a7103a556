#include "fuse/tree/errors.h"

namespace shima::fuse {

int errno_of(const Error& error) {
  if (error.sys_errno != 0) return error.sys_errno;
  switch (error.code) {
    case Code::bad_argument:
    case Code::bad_count:
      return EINVAL;
    case Code::bad_file_name:
      return ENAMETOOLONG;
    case Code::no_such_file:
      return ENOENT;
    case Code::file_exists:
      return EEXIST;
    case Code::file_in_use:
      return EBUSY;
    case Code::access_denied:
      return EACCES;
    case Code::read_only:
      return EROFS;
    case Code::unsupported_operation:
      return EOPNOTSUPP;
    case Code::no_memory:
      return ENOMEM;
    case Code::no_space:
      return ENOSPC;
    case Code::quota:
      return EDQUOT;
    default:
      return EIO;
  }
}

}  // namespace shima::fuse
