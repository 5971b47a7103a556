// If a writer on another node, or any writer, would not be detected, a restripe refuses to start.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/striped/restripe.h"
#include "striped_world.h"

namespace {

constexpr long nfs = 0x6969;

bool on_network = false;
bool without_leases = false;

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" int fstatfs(int fd, struct statfs* facts) noexcept {
  const long status = ::syscall(SYS_fstatfs, fd, facts);
  if (on_network) facts->f_type = nfs;
  return static_cast<int>(status);
}
extern "C" int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  const long argument = va_arg(more, long);
  va_end(more);
  if (without_leases && command == F_SETLEASE) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

namespace shima {
namespace {

const Bytes text = some_bytes(40000, 1);

TEST_F(StripedWorld, ARestripeThatWouldNotSeeWritersIsRefused) {
  new_world();
  make("d/f", three, text);
  for (bool* const cannot : {&on_network, &without_leases}) {
    *cannot = true;
    const Status status = restripe({path("d/f"), cut}, {});
    *cannot = false;
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::unsupported_operation);
    EXPECT_NE(status.error().what.find("shima cp --stripe"), std::string::npos)
        << status.error().what;
    EXPECT_EQ(contents("d/f"), text);
    EXPECT_EQ(findings(false), "");
  }
  require(restripe({path("d/f"), cut}, {}));
  EXPECT_EQ(contents("d/f"), text);
}

}  // namespace
}  // namespace shima
