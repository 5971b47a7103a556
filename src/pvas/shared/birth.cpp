#include "pvas/shared/birth.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace shima::pvas {
namespace {

// At most PIPE_BUF bytes, so that one write is atomic.
struct Birth {
  Code code = Code::ok;
  int sys_errno = 0;
  std::array<char, 500> words{};
};

}  // namespace

Result<BirthPipe> make_birth_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "creating a space's root");
  return BirthPipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Status hear_of_birth(const UniqueFd& to_hear, std::chrono::milliseconds limit) {
  pollfd wanted{to_hear.get(), POLLIN, 0};
  int ready = 0;
  do ready = ::poll(&wanted, 1, static_cast<int>(limit.count()));
  while (ready < 0 && errno == EINTR);
  if (ready == 0) return fail(Code::timed_out, "the space's root does not start");
  Birth birth;
  if (::read(to_hear.get(), &birth, sizeof birth) != sizeof birth)
    return fail(Code::no_memory,
                "pvas-root was killed before it had started; memory may have run out");
  if (birth.code == Code::ok) return {};
  return fail(birth.code, birth.words.data(), birth.sys_errno);
}

void tell_of_birth(int to_tell, Code code, int sys_errno, std::string_view why) {
  Birth birth{.code = code, .sys_errno = sys_errno};
  why.copy(birth.words.data(), std::min(why.size(), birth.words.size() - 1));
  // Without a reader, no process needs this root; the root detects that by itself.
  const ssize_t written = ::write(to_tell, &birth, sizeof birth);
  static_cast<void>(written);
}

}  // namespace shima::pvas
