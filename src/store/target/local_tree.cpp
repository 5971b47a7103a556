#include "store/target/local_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>

#include "base/file_text.h"
#include "base/unique_fd.h"
#include "store/target/directory_lock.h"
#include "store/target/directory_names.h"
#include "store/target/master_text.h"
#include "store/target/own_directory.h"
#include "store/target/permissions.h"
#include "store/target/target.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

Status done(int code, std::string_view doing, const std::string& path) {
  return code == 0 ? Status{} : Status(failed(doing, path));
}

Result<UniqueFd> open_directory(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("opening", directory);
  return fd;
}

class LocalTree final : public FileTree {
 public:
  Result<struct stat> examine(const std::string& path, Links links) override {
    struct stat facts{};
    const int flags = links == Links::keep ? AT_SYMLINK_NOFOLLOW : 0;
    SHIMA_TRY(done(::fstatat(AT_FDCWD, path.c_str(), &facts, flags), "examining", path));
    return facts;
  }

  Result<std::string> real_path(const std::string& path) override {
    std::error_code error;
    auto real = std::filesystem::canonical(path, error);
    if (error) return fail(code_of_errno(error.value()), "finding " + path, error.value());
    return real.string();
  }

  Result<std::vector<Entry>> entries(const std::string& directory) override {
    const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return failed("listing", directory);
    SHIMA_TRY_ASSIGN(const auto names, names_in(fd.get(), directory));
    std::vector<Entry> all;
    for (const std::string& name : names) {
      Entry entry{name, {}};
      // Another process may have removed it.
      if (::fstatat(fd.get(), name.c_str(), &entry.facts, AT_SYMLINK_NOFOLLOW) == 0)
        all.push_back(std::move(entry));
    }
    return all;
  }

  Result<std::optional<Text>> read_master(const std::string& path) override {
    return read_master_text(path);
  }

  Result<std::string> read_text(const std::string& path, std::size_t most_bytes) override {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return failed("reading", path);
    return read_up_to(fd.get(), most_bytes, path);
  }

  Status create_text(const std::string& path, std::string_view text, mode_t mode) override {
    SHIMA_TRY_ASSIGN(const Draft draft, Draft::write(path, text, mode));
    return draft.appear(path);
  }

  Status replace_master(const std::string& path, std::string_view text, Replacing how) override {
    return replace_master_text(path, text, how);
  }

  Status write_text(const std::string& path, std::string_view text, mode_t mode) override {
    const std::filesystem::path file(path);
    const std::string directory = file.parent_path().string();
    SHIMA_TRY_ASSIGN(const UniqueFd fd, open_directory(directory.empty() ? "." : directory));
    return write_whole(fd.get(), file.filename().string(), text, mode, path);
  }

  Status remove(const std::string& path) override {
    return done(::unlink(path.c_str()), "removing", path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return done(::rename(from.c_str(), to.c_str()), "renaming " + from + " to", to);
  }
  Status link(const std::string& from, const std::string& to) override {
    return done(::link(from.c_str(), to.c_str()), "linking " + from + " to", to);
  }
  Status make_symlink(const std::string& path, const std::string& text) override {
    return done(::symlink(text.c_str(), path.c_str()), "making the link", path);
  }
  Result<std::string> read_symlink(const std::string& path) override {
    std::string text(PATH_MAX, '\0');
    const ssize_t len = ::readlink(path.c_str(), text.data(), text.size());
    SHIMA_TRY(done(len < 0 ? -1 : 0, "reading the link", path));
    text.resize(as_unsigned(len));
    return text;
  }
  Status make_directory(const std::string& path, mode_t mode) override {
    return done(::mkdir(path.c_str(), mode), "making", path);
  }
  Status remove_directory(const std::string& path) override {
    return done(::rmdir(path.c_str()), "removing", path);
  }

  Status remove_own_directory(const std::string& directory) override {
    struct stat facts{};
    if (::lstat(own_directory_of(directory).c_str(), &facts) != 0) return {};
    SHIMA_TRY_ASSIGN(const UniqueFd fd, open_directory(directory));
    return shima::remove_own_directory(fd.get(), directory);
  }

  Status set_mode(const std::string& path, mode_t mode) override {
    return shima::set_mode(AT_FDCWD, path.c_str(), mode);
  }
  Status set_times(const std::string& path, const FileTimes& times) override {
    return shima::set_times(AT_FDCWD, path.c_str(), times);
  }
  Status check_writable(const std::string& directory) override {
    return check_writable_directory(directory);
  }
  Status sync(const std::string& path) override { return sync_file(path); }
  Status sync_directory_of(const std::string& path) override { return sync_directory_here(path); }

  Result<std::unique_ptr<Subfile>> open(const SubfileOpen& request) override {
    return open_subfile(request);
  }
  Result<std::unique_ptr<DirectoryHold>> try_lock(const std::string& path,
                                                  IfUnused unused) override {
    return try_lock_here(path, unused);
  }
  Result<std::shared_ptr<TargetFiles>> files_beside(const std::string& path,
                                                    BesideFiles how) override {
    return files_beside_here(path, how, path);
  }
};

}  // namespace

FileTree& local_tree() {
  static LocalTree tree;
  return tree;
}

}  // namespace shima
