#include "iod/key_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/file_text.h"
#include "base/unique_fd.h"
#include "iod/path/beneath.h"

namespace shima::iod {
namespace {

constexpr std::string_view user_mark = "%u";
constexpr std::size_t most_keys_file_bytes = std::size_t{1} << 20;

std::unexpected<Error> bad_line(const std::string& file, std::size_t number,
                                const std::string& why) {
  return fail(Code::bad_argument, fmt::format("{}, line {}: {}", file, number, why));
}

// Who can change the file decides who may act as whom.
Result<std::string> read_keys_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return fail_errno(errno, "reading the keys " + path);
  if ((facts.st_mode & 0022U) != 0 || (facts.st_uid != ::geteuid() && facts.st_uid != 0))
    return fail(Code::access_denied,
                fmt::format("other users can write the file of keys {}; correct it by chown and "
                            "chmod 600 {}",
                            path, path));
  return read_up_to(fd.get(), most_keys_file_bytes, path);
}

std::string directory_for(const std::string& user, std::string directory) {
  for (std::size_t at = 0; (at = directory.find(user_mark, at)) != std::string::npos;
       at += user.size())
    directory.replace(at, user_mark.size(), user);
  return directory;
}

std::string own_user_name() {
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(::geteuid());
}

std::shared_ptr<ServedTarget> made_for(const TargetPlace& place, bool is_directory) {
  auto target = std::make_shared<ServedTarget>();
  target->place = place;
  target->is_directory = is_directory;
  target->shown = BoardFile(place.name);
  return target;
}

// What `source` offers under these names.
Result<KeyRing::Source> named(const KeyRing::Source& source, const std::string& names) {
  KeyRing::Source chosen;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    const auto choose = [&](const auto& all, auto& into) {
      const auto found = std::ranges::find(all, name, &TargetPlace::name);
      if (found != all.end()) into.push_back(*found);
      return found != all.end();
    };
    if (!choose(source.targets, chosen.targets) && !choose(source.directories, chosen.directories))
      return fail(Code::bad_argument, fmt::format("target or directory {} is not served", name));
  }
  return chosen;
}

}  // namespace

Result<KeyRing> KeyRing::read(const Source& source, const KeyRing& former) {
  KeyRing ring;
  if (!source.key_file.empty()) {
    SHIMA_TRY_ASSIGN(Key key, read_key(source.key_file));
    auto targets = ring.served_to(own_user_name(), source, former);
    SHIMA_TRY(ring.add("", std::move(key), {}, std::move(targets), source, former));
  }
  if (!source.keys_file.empty()) SHIMA_TRY(ring.read_users(source, former));
  if (ring.keys_.empty())
    return fail(Code::bad_argument, source.keys_file.empty() ? std::string("no key")
                                                             : source.keys_file + " has no key");
  return ring;
}

Status KeyRing::read_users(const Source& source, const KeyRing& former) {
  SHIMA_TRY_ASSIGN(const std::string text, read_keys_file(source.keys_file));
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string user;
    std::string key_file;
    std::string names;
    std::string more;
    if (!(words >> user)) continue;
    if (!(words >> key_file) || (words >> names && words >> more))
      return bad_line(source.keys_file, number, "write USER KEY-FILE [NAME,NAME...]");
    auto identity = find_identity(user);
    if (!identity) return bad_line(source.keys_file, number, identity.error().what);
    if (::geteuid() != 0 && identity->user != ::geteuid())
      return bad_line(source.keys_file, number,
                      fmt::format("only a daemon of root can act as {}", user));
    const auto path = std::filesystem::path(source.keys_file).parent_path() / key_file;
    auto key = read_key(path.string(), std::array{uid_t{0}, ::geteuid(), identity->user});
    if (!key) return bad_line(source.keys_file, number, key.error().what);
    const auto offered = names.empty() ? source : named(source, names);
    if (!offered) return bad_line(source.keys_file, number, offered.error().what);
    const bool is_own = identity->user == ::geteuid();
    auto targets = served_to(user, *offered, former);
    const Status added =
        add(user, *std::move(key), is_own ? std::nullopt : std::optional(*std::move(identity)),
            std::move(targets), source, former);
    if (!added) return bad_line(source.keys_file, number, added.error().what);
  }
  return {};
}

Status KeyRing::add(std::string user, Key key, std::optional<Identity> identity,
                    ServedTargets targets, const Source& source, const KeyRing& former) {
  if (std::ranges::find(keys_, key) != keys_.end())
    return fail(Code::bad_argument, "two keys are the same");
  const auto is_same = [&](const auto& one) {
    return one->user == user && one->key == key && one->targets == targets &&
           one->identity.has_value() == identity.has_value() &&
           (!identity ||
            (one->identity->user == identity->user && one->identity->group == identity->group &&
             one->identity->groups == identity->groups));
  };
  const auto old = std::ranges::find_if(former.holders_, is_same);
  keys_.push_back(key);
  if (old != former.holders_.end()) {
    holders_.push_back(*old);
    return {};
  }
  holders_.push_back(std::make_shared<KeyHolder>(std::move(user), std::move(key),
                                                 std::move(targets), source.memory_bytes));
  holders_.back()->identity = std::move(identity);
  return {};
}

ServedTargets KeyRing::served_to(const std::string& user, const Source& offered,
                                 const KeyRing& former) {
  ServedTargets all;
  const auto add_all = [&](const std::vector<TargetPlace>& places, bool is_directory) {
    for (const TargetPlace& place : places)
      all.push_back(served({place.name, path_without_links(directory_for(user, place.directory))},
                           is_directory, former));
  };
  add_all(offered.targets, false);
  add_all(offered.directories, true);
  return all;
}

std::shared_ptr<ServedTarget> KeyRing::served(const TargetPlace& place, bool is_directory,
                                              const KeyRing& former) {
  const auto is_it = [&](const auto& target) {
    return target->place == place && target->is_directory == is_directory;
  };
  const auto known = std::ranges::find_if(targets_, is_it);
  if (known != targets_.end()) return *known;
  const auto old = std::ranges::find_if(former.targets_, is_it);
  targets_.push_back(old != former.targets_.end() ? *old : made_for(place, is_directory));
  return targets_.back();
}

}  // namespace shima::iod
