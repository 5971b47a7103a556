#include "store/target/local_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/file_text.h"
#include "store/subfile/close_to_open.h"
#include "store/target/directory_names.h"
#include "store/target/permissions.h"
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
Status take_lease(int fd, const std::string& path) {
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
  ::fcntl(fd, F_SETOWN, 0);  // no signal: holds() polls
  return {};
}

class LocalLease final : public WriterLease {
 public:
  LocalLease(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<bool> holds() override { return ::fcntl(fd_.get(), F_GETLEASE) == F_RDLCK; }
  Result<struct stat> facts() override {
    struct stat facts{};
    if (::fstat(fd_.get(), &facts) != 0) return failed("examining", path_);
    return facts;
  }

 private:
  UniqueFd fd_;
  std::string path_;
};

class LocalFiles final : public TargetFiles {
 public:
  LocalFiles(UniqueFd fd, std::string directory)
      : fd_(std::move(fd)), directory_(std::move(directory)) {}

  int directory_fd() const override { return fd_.get(); }

  Result<struct stat> examine(const std::string& name) override {
    struct stat facts{};
    if (::fstatat(fd_.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
      return failed("examining", path_of(name));
    return facts;
  }

  Result<std::vector<std::string>> names() override { return names_in(fd_.get(), directory_); }

  Result<Text> read_text(const std::string& name, std::size_t most_bytes) override {
    const UniqueFd fd = open_by(name, O_RDONLY | O_NONBLOCK);
    if (!fd) return failed("reading", path_of(name));
    struct stat facts{};
    if (::fstat(fd.get(), &facts) != 0) return failed("examining", path_of(name));
    SHIMA_TRY_ASSIGN(std::string text, read_up_to(fd.get(), most_bytes, path_of(name)));
    return Text{std::move(text), facts.st_uid};
  }

  Status write_text(const std::string& name, std::string_view text, mode_t mode) override {
    return write_whole(fd_.get(), name, text, mode, path_of(name));
  }

  Status make(const std::string& name, mode_t mode) override {
    const UniqueFd fd(::openat(fd_.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) return failed("creating", path_of(name));
    return {};
  }

  Status truncate(const std::string& name, std::uint64_t size_bytes) override {
    const UniqueFd fd = open_by(name, O_WRONLY);
    if (!fd || ::ftruncate(fd.get(), as_signed(size_bytes)) != 0)
      return failed("setting the size of", path_of(name));
    return {};
  }

  Status remove(const std::string& name) override {
    if (::unlinkat(fd_.get(), name.c_str(), 0) != 0) return failed("removing", path_of(name));
    return {};
  }

  Status link_into(TargetFiles& there, const std::string& name) override {
    const int goal = there.directory_fd();
    if (goal < 0) return fail_errno(EXDEV, "linking " + path_of(name));
    if (::linkat(fd_.get(), name.c_str(), goal, name.c_str(), 0) != 0)
      return failed("linking", path_of(name));
    return {};
  }

  Status set_mode(const std::string& name, mode_t mode) override {
    return shima::set_mode(fd_.get(), name.c_str(), mode);
  }

  Status set_times(const std::string& name, const FileTimes& times) override {
    return shima::set_times(fd_.get(), name.c_str(), times);
  }

  Status give_new(const std::string& name, const struct stat& like) override {
    return give_new_file(fd_.get(), name.c_str(), like);
  }

  bool is_being_written(const std::string& name) override {
    const UniqueFd fd = open_by(name, O_RDONLY);
    return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
  }

  Status sync() override {
    if (::fsync(fd_.get()) != 0) return failed("syncing", directory_);
    return {};
  }

  Result<std::unique_ptr<Subfile>> open(const std::string& name,
                                        const SubfileOpen& request) override {
    SubfileOpen here = request;
    here.path = path_of(name);
    here.follow_links = false;
    here.directory_fd = fd_.get();  // the path may lead elsewhere meanwhile
    return open_subfile(here);
  }

  Result<std::unique_ptr<WriterLease>> lease(const std::string& name, Sole sole) override {
    UniqueFd fd = open_by(name, O_RDONLY | O_NONBLOCK);
    if (!fd) return failed("opening", path_of(name));
    if (sole == Sole::yes && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(Code::file_in_use, path_of(name) + " is being restriped already");
    SHIMA_TRY(take_lease(fd.get(), path_of(name)));
    return std::make_unique<LocalLease>(std::move(fd), path_of(name));
  }

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return directory_ + "/" + name;
  }
  [[nodiscard]] UniqueFd open_by(const std::string& name, int flags) const {
    return UniqueFd(::openat(fd_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  }

  UniqueFd fd_;
  std::string directory_;
};

}  // namespace

std::shared_ptr<TargetFiles> local_files(UniqueFd fd, std::string directory) {
  return std::make_shared<LocalFiles>(std::move(fd), std::move(directory));
}

}  // namespace shima
