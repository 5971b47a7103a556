#include "store/striped/writer_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "store/subfile/close_to_open.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

std::unexpected<Error> in_use(const std::string& path) {
  return fail(Code::file_in_use,
              path + " is open for writing in another process; try again when it is closed");
}

std::unexpected<Error> cannot_watch(const std::string& path, std::string_view why) {
  return fail(
      Code::unsupported_operation,
      fmt::format("{} {}, and its bytes could be lost; while no process writes, make a copy by "
                  "`shima cp --stripe ...`, and `shima mv` it to the file's name",
                  path, why));
}

// A read lease is refused while any process has the file open for writing (EAGAIN). It reveals only
// the writers of this node.
Status lease(int fd, const std::string& path) {
  if (!is_local(fd))
    return cannot_watch(path,
                        "is on a file system on which another node could write unseen meanwhile");
  // A process that opens the file before F_SETOWN below causes this signal, which has no effect.
  ::fcntl(fd, F_SETSIG, SIGURG);
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) {
    if (errno == EAGAIN) return in_use(path);
    return cannot_watch(path, errno == EACCES ? "is another user's, and only its owner can detect "
                                                "writers"
                                              : "is on a file system that does not reveal "
                                                "writers (it has no leases)");
  }
  ::fcntl(fd, F_SETOWN, 0);  // no signal: still_alone() polls
  return {};
}

}  // namespace

Result<WriterWatch> WriterWatch::begin(const std::vector<Part>& parts) {
  WriterWatch watch;
  for (const Part& part : parts) {
    Watched file{UniqueFd(::openat(part.target->fd(), part.name.c_str(),
                                   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)),
                 part.path()};
    if (!file.fd) return failed("opening", file.path);
    if (watch.files_.empty() && ::flock(file.fd.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(Code::file_in_use, file.path + " is being restriped already");
    SHIMA_TRY(lease(file.fd.get(), file.path));
    watch.files_.push_back(std::move(file));
  }
  SHIMA_TRY_ASSIGN(watch.stamp_, watch.stamp_now());
  return watch;
}

Status WriterWatch::still_alone() const {
  for (const Watched& file : files_)
    if (::fcntl(file.fd.get(), F_GETLEASE) != F_RDLCK) return in_use(file.path);
  SHIMA_TRY_ASSIGN(const std::uint64_t now, stamp_now());
  if (now != stamp_) return in_use(files_.front().path);
  return {};
}

Result<std::uint64_t> WriterWatch::stamp_now() const {
  std::uint64_t stamp = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t number) { stamp = (stamp ^ number) * 0x100000001b3U; };
  for (const Watched& file : files_) {
    struct stat facts{};
    if (::fstat(file.fd.get(), &facts) != 0) return failed("examining", file.path);
    add(static_cast<std::uint64_t>(facts.st_size));
    add(static_cast<std::uint64_t>(facts.st_mtim.tv_sec));
    add(static_cast<std::uint64_t>(facts.st_mtim.tv_nsec));
  }
  return stamp;
}

}  // namespace shima
