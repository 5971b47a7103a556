#include "store/target/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/file_text.h"
#include "base/unique_fd.h"
#include "layout/master_file.h"
#include "store/remote/place.h"
#include "store/remote/remote_files.h"
#include "store/subfile/file_steps.h"
#include "store/target/local_files.h"
#include "store/target/own_directory.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

constexpr std::string_view marker_head = "shima target ";

std::unexpected<Error> refuse(const std::string& name, const std::string& directory, int sys_errno,
                              std::string_view why) {
  // Not no_such_file, which programs handle as a missing file of their own.
  const bool is_plain = sys_errno == 0 || sys_errno == ENOENT;
  return fail(is_plain ? Code::bad_file : code_of_errno(sys_errno),
              fmt::format("target {} ({}): {}", name, directory, why), sys_errno);
}

Result<TargetPlace> checked(TargetPlace place, std::string_view where) {
  if (!is_target_name(place.name) || place.name == beside_target)
    return fail(Code::bad_argument,
                fmt::format("{}: \"{}\" is not a target name; use letters, digits, _ and -, as in "
                            "disk0=/mnt/disk0",
                            where, place.name));
  if (place.directory.starts_with(remote::scheme)) {
    if (remote::parse_place(place.directory)) return place;
    return fail(Code::bad_argument,
                fmt::format("{}: target {}: \"{}\" is not of the form iod://HOST:PORT/NAME", where,
                            place.name, place.directory));
  }
  if (!place.directory.starts_with('/'))
    return fail(Code::bad_argument, fmt::format("{}: target {}: \"{}\" must begin with /", where,
                                                place.name, place.directory));
  return place;
}

Status add(std::vector<TargetPlace>& places, Result<TargetPlace> place, std::string_view where) {
  SHIMA_TRY(place);
  if (std::ranges::find(places, place->name, &TargetPlace::name) != places.end())
    return fail(Code::bad_argument,
                fmt::format("{}: two targets have the name {}", where, place->name));
  places.push_back(*std::move(place));
  return {};
}

// --- the marker ---------------------------------------------------------------------------------

std::string marker_of(const std::string& name) { return fmt::format("{}{}\n", marker_head, name); }

// The text of the marker; empty if there is none.
Result<std::string> read_marker(const std::string& name, const std::string& directory, int fd) {
  const UniqueFd file(::openat(fd, target_marker, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return refuse(name, directory, errno, "its file .shima-target cannot be read");
  std::array<char, 256> text{};
  const ssize_t len = ::read(file.get(), text.data(), text.size());
  if (len < 0) return refuse(name, directory, errno, "its file .shima-target cannot be read");
  return std::string(text.data(), static_cast<std::size_t>(len));
}

// Several processes may do this at once: the name appears whole or not at all.
Status write_marker(const std::string& name, const std::string& directory, int fd) {
  // Readable by all users of the target, independent of the umask of the first.
  const Status written = write_whole(fd, target_marker, marker_of(name), 0644,
                                     directory + "/" + target_marker, Umask::ignored);
  if (!written)
    return refuse(name, directory, written.error().sys_errno, "it cannot be written to");
  return {};
}

Status check_marker(const std::string& name, const std::string& directory, int fd,
                    Target::Purpose purpose) {
  SHIMA_TRY_ASSIGN(const std::string text, read_marker(name, directory, fd));
  if (text == marker_of(name)) return {};
  if (text.empty() && purpose == Target::Purpose::create) return write_marker(name, directory, fd);
  if (text.empty())
    return refuse(name, directory, 0,
                  "it is not a target (it has no file .shima-target); is its disk mounted?");
  return refuse(
      name, directory, 0,
      fmt::format("it is another target, as its file .shima-target says (\"{}\"); correct "
                  "the list of targets",
                  text.substr(0, text.find('\n'))));
}

// --- the directory ------------------------------------------------------------------------------

Status check_owner(const std::string& name, const std::string& directory, int fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return refuse(name, directory, errno, "it cannot be examined");
  const uid_t me = ::geteuid();
  if (facts.st_uid == me || me == 0 || (facts.st_mode & S_IWOTH) != 0) return {};
  if (::faccessat(fd, ".", W_OK, AT_EACCESS) == 0) return {};  // shared with us on purpose
  return refuse(name, directory, EACCES,
                "it belongs to another user and is not writable for this user");
}

Status check_room(const std::string& name, const std::string& directory, int fd) {
  struct statvfs facts{};
  if (::fstatvfs(fd, &facts) != 0) return refuse(name, directory, errno, "it cannot be examined");
  if ((facts.f_flag & ST_RDONLY) != 0)
    return refuse(name, directory, EROFS, "its file system is read-only");
  // Some file systems (ramfs, tmpfs without a limit) do not count blocks.
  if (facts.f_bavail == 0 && facts.f_blocks > 0)
    return refuse(name, directory, ENOSPC, "its file system is full");
  return check_owner(name, directory, fd);
}

Result<std::string> directory_of(const std::string& name, const std::string& master_path) {
  SHIMA_TRY_ASSIGN(const auto places, configured_targets());
  const auto found = std::ranges::find(places, name, &TargetPlace::name);
  if (found != places.end()) return found->directory;
  std::vector<std::string> known;
  for (const TargetPlace& place : places) known.push_back(place.name);
  return fail(
      Code::bad_file,
      fmt::format("{} needs target {}, which is not configured ({}); name its directory, for "
                  "example SHIMA_TARGETS={}=/path",
                  master_path, name,
                  known.empty() ? std::string("no target is")
                                : fmt::format("{} are", fmt::join(known, ", ")),
                  name));
}

// `path`: of a file, which need not exist; its directory is real.
Result<UniqueFd> open_beside(const std::string& directory, const std::string& path,
                             FileTree::BesideFiles how) {
  if (how == FileTree::BesideFiles::create) return open_own_directory(path, IfMissing::make);
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd)
    return refuse(std::string(beside_target), directory, errno, "the directory cannot be opened");
  return fd;
}

Result<std::shared_ptr<TargetFiles>> open_local(const std::string& name,
                                                const std::string& directory, UniqueFd fd,
                                                Target::Purpose purpose) {
  if (purpose == Target::Purpose::create) SHIMA_TRY(check_room(name, directory, fd.get()));
  SHIMA_TRY(check_marker(name, directory, fd.get(), purpose));
  return local_files(std::move(fd), directory);
}

// The error names the target.
std::unexpected<Error> cannot_use(const std::string& name, Error error) {
  return fail(error.code == Code::no_such_file ? Code::bad_file : error.code,
              fmt::format("target {}: {}", name, error.what), error.sys_errno);
}

Result<std::vector<Target>> find_each(const std::vector<std::string>& names,
                                      const std::string& master_path, Target::Purpose purpose) {
  std::vector<Target> targets;
  for (const std::string& name : names) {
    if (std::ranges::find(targets, name, &Target::name) != targets.end()) continue;
    SHIMA_TRY_ASSIGN(Target target, Target::find(name, master_path, purpose));
    targets.push_back(std::move(target));
  }
  return targets;
}

// Asks all I/O nodes that have not been asked, at once.
Status ask(const std::vector<Target>& targets, Target::Purpose purpose) {
  std::vector<const Target*> asked;
  std::vector<StepOn> steps;
  for (const Target& target : targets) {
    if (target.is_asked()) continue;
    asked.push_back(&target);
    steps.push_back({&target.files(), Target::asking_step(purpose)});
  }
  const auto results = take_steps(steps);
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (!results[i].done) return asked[i]->refusal(results[i].done.error());
  return {};
}

std::vector<std::string> usual_files() {
  std::vector<std::string> files;
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config != '\0') {
    files.push_back(fmt::format("{}/shima/targets", config));
  } else if (home != nullptr) {
    files.push_back(fmt::format("{}/.config/shima/targets", home));
  }
  files.emplace_back("/etc/shima/targets");
  return files;
}

}  // namespace

Result<std::vector<TargetPlace>> parse_target_list(std::string_view text) {
  std::vector<TargetPlace> places;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, remote::first_entry(text));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    TargetPlace place;
    if (equals != std::string_view::npos) {
      place = {std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))};
    } else {
      const std::string_view trimmed = part.substr(0, part.find_last_not_of('/') + 1);
      place = {std::string(trimmed.substr(trimmed.rfind('/') + 1)), std::string(part)};
    }
    SHIMA_TRY(add(places, checked(std::move(place), "SHIMA_TARGETS"), "SHIMA_TARGETS"));
  }
  return places;
}

Result<std::vector<TargetPlace>> parse_target_file(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<TargetPlace> places;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(blanks);
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(blanks) + 1 - begin);
    const std::size_t end = std::min(line.find_first_of(blanks), line.size());
    const std::size_t path = std::min(line.find_first_not_of(blanks, end), line.size());
    SHIMA_TRY(add(places,
                  checked({std::string(line.substr(0, end)), std::string(line.substr(path))},
                          "the file of targets"),
                  "the file of targets"));
  }
  return places;
}

Result<std::vector<TargetPlace>> configured_targets() {
  if (const char* list = std::getenv("SHIMA_TARGETS"); list != nullptr && *list != '\0')
    return parse_target_list(list);
  if (const char* file = std::getenv("SHIMA_TARGETS_FILE"); file != nullptr && *file != '\0') {
    const auto text = file_text(file);
    if (text) return parse_target_file(*text);
    return fail(Code::no_such_file, fmt::format("SHIMA_TARGETS_FILE={}: it cannot be read", file),
                text.error().sys_errno);
  }
  for (const std::string& path : usual_files())
    if (const auto text = file_text(path)) return parse_target_file(*text);
  return std::vector<TargetPlace>{};
}

Result<std::string> iod_key_file() {
  if (const char* file = std::getenv("SHIMA_IOD_KEY"); file != nullptr && *file != '\0')
    return std::string(file);
  std::vector<std::string> lists = usual_files();
  if (const char* list = std::getenv("SHIMA_TARGETS_FILE"); list != nullptr && *list != '\0')
    lists.insert(lists.begin(), list);
  for (const std::string& list : lists) {
    const auto key = std::filesystem::path(list).parent_path() / "iod.key";
    std::error_code error;
    if (std::filesystem::exists(key, error)) return key.string();
  }
  return fail(Code::access_denied,
              "an I/O node needs a key: name its file by SHIMA_IOD_KEY, or put it as iod.key "
              "beside the list of targets",
              0);
}

Result<std::shared_ptr<TargetFiles>> files_beside_here(const std::string& path,
                                                       FileTree::BesideFiles how,
                                                       const std::string& shown) {
  const std::string directory = own_directory_of(directory_of_path(shown));
  SHIMA_TRY_ASSIGN(UniqueFd fd, open_beside(own_directory_of(directory_of_path(path)), path, how));
  const bool creates = how == FileTree::BesideFiles::create;
  return open_local(std::string(beside_target), directory, std::move(fd),
                    creates ? Target::Purpose::create : Target::Purpose::use);
}

Result<Target> Target::open(const std::string& name, const std::string& master_path,
                            Purpose purpose) {
  SHIMA_TRY_ASSIGN(auto targets, open_targets({name}, master_path, purpose));
  return std::move(targets.front());
}

Result<Target> Target::find(const std::string& name, const std::string& master_path,
                            Purpose purpose) {
  if (name != beside_target) {
    SHIMA_TRY_ASSIGN(std::string directory, directory_of(name, master_path));
    return find_at({name, std::move(directory)}, purpose);
  }
  // A link to the file is followed, because subfiles are beside the file itself.
  SHIMA_TRY_ASSIGN(const std::string path, real_or_new_path_of(master_path));
  auto files =
      tree_at(path).files_beside(path, purpose == Purpose::create ? FileTree::BesideFiles::create
                                                                  : FileTree::BesideFiles::use);
  if (!files && is_on_node(path)) return cannot_use(name, files.error());
  SHIMA_TRY(files);
  return Target(name, own_directory_of(directory_of_path(path)), *std::move(files));
}

Result<Target> Target::open_at(const TargetPlace& place, Purpose purpose) {
  std::vector<Target> one;
  SHIMA_TRY_ASSIGN(Target found, find_at(place, purpose));
  one.push_back(std::move(found));
  SHIMA_TRY(ask(one, purpose));
  return std::move(one.front());
}

Result<Target> Target::find_at(const TargetPlace& place, Purpose purpose) {
  if (const auto far = remote::parse_place(place.directory)) {
    SHIMA_TRY_ASSIGN(const std::string key_file, iod_key_file());
    return Target(place.name, place.directory, remote::remote_files(*far, key_file), false);
  }
  UniqueFd fd(::open(place.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return refuse(place.name, place.directory, errno, "the directory cannot be opened");
  return open_in(place, std::move(fd), purpose);
}

Result<Target> Target::open_in(const TargetPlace& place, UniqueFd directory, Purpose purpose) {
  SHIMA_TRY_ASSIGN(auto files,
                   open_local(place.name, place.directory, std::move(directory), purpose));
  return Target(place.name, place.directory, std::move(files));
}

Result<struct stat> Target::facts() const {
  struct stat facts{};
  if (directory_fd() < 0) return tree_at(directory_).examine(directory_, FileTree::Links::keep);
  if (::fstat(directory_fd(), &facts) != 0) return failed("examining", directory_);
  return facts;
}

TargetFiles::Step Target::asking_step(Purpose purpose) {
  return {.kind = TargetFiles::Step::Kind::attach,
          .name = {},
          .bytes = purpose == Purpose::create ? 1U : 0U};
}

std::unexpected<Error> Target::refusal(const Error& why) const { return cannot_use(name_, why); }

Result<std::vector<Target>> open_targets(const std::vector<std::string>& names,
                                         const std::string& master_path, Target::Purpose purpose) {
  SHIMA_TRY_ASSIGN(auto targets, find_each(names, master_path, purpose));
  SHIMA_TRY(ask(targets, purpose));
  return targets;
}

Result<std::vector<Target>> find_targets(const std::vector<std::string>& names,
                                         const std::string& master_path) {
  return find_each(names, master_path, Target::Purpose::use);
}

bool is_same_file(const Target& a, const Target& b, const std::string& name) {
  const auto one = a.files().examine(name);
  const auto other = b.files().examine(name);
  return one && other && one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

const Target& target_called(const std::vector<Target>& targets, std::string_view name) {
  return *std::ranges::find(targets, name, &Target::name);
}

}  // namespace shima
