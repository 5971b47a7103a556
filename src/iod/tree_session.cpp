#include "iod/tree_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "iod/path/told_facts.h"
#include "store/target/local_tree.h"
#include "store/target/target.h"

namespace shima::iod {
namespace {

using remote::Facts;
using remote::Op;
using remote::Opening;
using remote::Request;

Result<std::int64_t> done(const Status& status) {
  return status ? Result<std::int64_t>(0) : std::unexpected(status.error());
}

void put(Buffer& data, std::string_view bytes) { data.put(std::as_bytes(std::span(bytes))); }

std::string_view bytes_of(const Facts& facts) {
  return {reinterpret_cast<const char*>(&facts), sizeof facts};
}

std::int64_t put_facts(Buffer& data, const struct stat& facts) {
  const Facts answer = told(facts);
  put(data, bytes_of(answer));
  return 0;
}

// The client knows the path, not this process's descriptors.
template <class T>
Result<T> shown(Result<T> result, const PathBeneath& place, const std::string& path) {
  if (result) return result;
  std::string text = result.error().what;
  for (std::size_t at = text.find(place.path); at != std::string::npos;
       at = text.find(place.path, at + path.size()))
    text.replace(at, place.path.size(), path);
  return fail(result.error().code, std::move(text), result.error().sys_errno);
}

mode_t mode_in(std::int64_t number) { return static_cast<mode_t>(number & 07777); }

// Names after `last`, as many as fit into a reply.
Result<std::int64_t> list(const PathBeneath& place, const std::string& last, Buffer& data) {
  SHIMA_TRY_ASSIGN(auto entries, local_tree().entries(place.path));
  std::erase_if(entries, [&](const FileTree::Entry& one) { return one.name <= last; });
  std::ranges::sort(entries, {}, &FileTree::Entry::name);
  std::vector<std::string> words;
  std::size_t bytes = 0;
  for (const FileTree::Entry& entry : entries) {
    bytes += entry.name.size() + sizeof(Facts) + 2 * sizeof(std::uint32_t);
    if (bytes > remote::most_data_bytes) break;
    const Facts facts = told(entry.facts);
    words.emplace_back(bytes_of(facts));
    words.push_back(entry.name);
  }
  const auto encoded = remote::encode_words(words);
  put(data, {reinterpret_cast<const char*>(encoded.data()), encoded.size()});
  return 0;
}

Result<std::int64_t> read_master(const PathBeneath& place, Buffer& data) {
  SHIMA_TRY_ASSIGN(const auto found, local_tree().read_master(place.path));
  if (!found) return 0;
  const Facts facts = told(found->facts);
  put(data, std::string(bytes_of(facts)) + found->text);
  return 1;
}

bool only_looks(Op op) {
  return op == Op::examine_path || op == Op::real_path || op == Op::list_paths ||
         op == Op::read_master || op == Op::read_path || op == Op::check_writable ||
         op == Op::sync_path;
}

bool has_third_word(Op op) {
  return op == Op::rename_path || op == Op::link_path || op == Op::list_paths ||
         op == Op::set_path_times || op == Op::make_symlink;
}

// A special file may block its opener for ever, and has no bytes at an offset.
Status check_regular(const struct stat& facts, const std::string& path) {
  if (S_ISREG(facts.st_mode)) return {};
  if (S_ISDIR(facts.st_mode)) return fail_errno(EISDIR, "opening " + path);
  return fail(Code::access_denied, path + " is not a regular file", EACCES);
}

}  // namespace

bool TreeSession::serves(Op op) {
  return (op >= Op::examine_path && op <= Op::unlock_directory) || op == Op::set_path_times ||
         op == Op::make_symlink || op == Op::read_symlink;
}

Result<std::int64_t> TreeSession::execute(const Request& request, const std::string& directory,
                                          Buffer& data) {
  const Op op = request.op();
  if (request.words.size() != (has_third_word(op) ? 3U : 2U))
    return fail(Code::bad_argument, "a request's words", EINVAL);
  SHIMA_TRY_ASSIGN(const Beneath beneath, Beneath::open(directory));
  if (only_looks(op)) return look(request, beneath, data);
  SHIMA_TRY_ASSIGN(const PathBeneath name, beneath.name(request.words[1]));
  return shown(change(request, name, beneath, data), name, request.words[1]);
}

Result<std::int64_t> TreeSession::look(const Request& request, const Beneath& beneath,
                                       Buffer& data) {
  const Op op = request.op();
  const std::string& path = request.words[1];
  if (op == Op::real_path) {
    SHIMA_TRY_ASSIGN(const std::string real, beneath.real_path(path));
    put(data, real);
    return 0;
  }
  // A link is what its name refers to.
  const bool keeps_link = op == Op::examine_path && request.head.first == 0 && !path.empty();
  auto place = keeps_link ? beneath.name(path) : beneath.object(path);
  // As read_master of a path that leads nowhere: the caller's own open reports why.
  if (!place && op == Op::read_master && place.error().code != Code::io) return 0;
  if (!place) return std::unexpected(place.error());
  const auto execute = [&]() -> Result<std::int64_t> {
    switch (op) {
      case Op::examine_path: {
        const auto links = keeps_link ? FileTree::Links::keep : FileTree::Links::follow;
        SHIMA_TRY_ASSIGN(const struct stat facts, local_tree().examine(place->path, links));
        return put_facts(data, facts);
      }
      case Op::list_paths:
        return list(*place, request.words[2], data);
      case Op::read_master:
        return read_master(*place, data);
      case Op::read_path: {
        const auto most = std::clamp<std::int64_t>(request.head.first, 0, remote::most_data_bytes);
        SHIMA_TRY_ASSIGN(const struct stat facts,
                         local_tree().examine(place->path, FileTree::Links::follow));
        SHIMA_TRY(check_regular(facts, path));
        SHIMA_TRY_ASSIGN(const std::string text,
                         local_tree().read_text(place->path, static_cast<std::size_t>(most)));
        put(data, text);
        return 0;
      }
      case Op::check_writable:
        return done(local_tree().check_writable(place->path));
      default:
        return done(local_tree().sync(place->path));
    }
  };
  return shown(execute(), *place, path);
}

Result<std::int64_t> TreeSession::change(const Request& request, const PathBeneath& name,
                                         const Beneath& beneath, Buffer& data) {
  FileTree& tree = local_tree();
  const std::string& path = name.path;
  const std::int64_t first = request.head.first;
  const std::string_view text(reinterpret_cast<const char*>(data.bytes().data()),
                              data.bytes().size());
  switch (request.op()) {
    case Op::create_text:
      return done(tree.create_text(path, text, mode_in(first)));
    case Op::replace_master:
      return done(tree.replace_master(
          path, text,
          first == 0 ? FileTree::Replacing::alike : FileTree::Replacing::as_far_as_we_may));
    case Op::write_path:
      return done(tree.write_text(path, text, mode_in(first)));
    case Op::remove_path:
      return done(tree.remove(path));
    case Op::rename_path:
    case Op::link_path: {
      SHIMA_TRY_ASSIGN(const PathBeneath goal, beneath.name(request.words[2]));
      const Status changed =
          request.op() == Op::link_path ? tree.link(path, goal.path) : tree.rename(path, goal.path);
      return shown(done(changed), goal, request.words[2]);
    }
    case Op::make_directory:
      return done(tree.make_directory(path, mode_in(first)));
    case Op::remove_directory:
      return done(tree.remove_directory(path));
    case Op::remove_own_directory: {  // of the directory that the path refers to
      SHIMA_TRY_ASSIGN(const PathBeneath place, beneath.object(request.words[1]));
      return shown(done(tree.remove_own_directory(place.path)), place, request.words[1]);
    }
    case Op::set_path_mode:
      return done(tree.set_mode(path, mode_in(first)));
    case Op::set_path_times: {
      SHIMA_TRY_ASSIGN(const FileTimes times, remote::decode_times(request.words[2]));
      return done(tree.set_times(path, times));
    }
    case Op::make_symlink: {
      const std::string& goal = request.words[2];
      if (goal.find('\0') != std::string::npos)
        return fail_errno(EINVAL, "making the link " + path);
      return done(tree.make_symlink(path, goal));
    }
    case Op::read_symlink: {
      SHIMA_TRY_ASSIGN(const std::string goal, tree.read_symlink(path));
      put(data, goal);
      return 0;
    }
    case Op::sync_directory:
      return done(tree.sync_directory_of(path));
    default:
      return lock(request, name);
  }
}

Result<std::int64_t> TreeSession::lock(const Request& request, const PathBeneath& name) {
  switch (request.op()) {
    case Op::lock_directory: {
      if (hold_) return fail(Code::bad_handle, "a lock is held over this connection", EBUSY);
      const auto unused =
          request.head.first == 0 ? FileTree::IfUnused::make : FileTree::IfUnused::leave;
      SHIMA_TRY_ASSIGN(hold_, local_tree().try_lock(name.path, unused));
      return hold_ ? 1 : 0;
    }
    case Op::admit_writers:
      if (hold_) hold_->admit_writers_of(name.path);
      return 0;
    default:
      return fail(Code::unsupported_operation, "this request", ENOSYS);
  }
}

Result<std::unique_ptr<Subfile>> TreeSession::open(const Request& request,
                                                   const std::string& directory, Facts& facts) {
  if (request.words.size() != 2) return fail(Code::bad_argument, "a request's words", EINVAL);
  const std::string& path = request.words[1];
  const auto has = [&](std::int64_t bit) { return (request.head.first & bit) != 0; };
  SHIMA_TRY_ASSIGN(const Beneath beneath, Beneath::open(directory));
  auto place = beneath.object(path);
  const bool is_new = !place && place.error().sys_errno == ENOENT && has(Opening::create);
  if (place && has(Opening::create) && has(Opening::exclusive))
    return fail_errno(EEXIST, "creating " + path);
  if (is_new) place = beneath.name(path);
  if (!place) return std::unexpected(place.error());
  if (!is_new) {
    SHIMA_TRY_ASSIGN(const struct stat now,
                     local_tree().examine(place->path, FileTree::Links::follow));
    SHIMA_TRY(check_regular(now, path));
  }
  auto opened = local_tree().open({.path = place->path,
                                   .read = has(Opening::read),
                                   .write = has(Opening::write),
                                   .create = is_new,
                                   .exclusive = is_new && has(Opening::exclusive),
                                   .direct_read = has(Opening::direct_read),
                                   .direct_write = has(Opening::direct_write),
                                   .follow_links = !is_new,
                                   .permissions = mode_in(request.head.second),
                                   .portion_bytes = portion_bytes});
  if (!opened) return shown(std::move(opened), *place, path);
  SHIMA_TRY_ASSIGN(const struct stat now,
                   local_tree().examine(place->path, FileTree::Links::follow));
  SHIMA_TRY_ASSIGN(const FileIdentity identity, (*opened)->identity());
  if (identity != FileIdentity{now.st_dev, now.st_ino})
    return fail(Code::file_in_use, path + " was replaced while it was being opened");
  facts = told(now);
  return opened;
}

Result<std::shared_ptr<TargetFiles>> TreeSession::files_beside(const std::string& directory,
                                                               const std::string& below,
                                                               const std::string& name,
                                                               FileTree::BesideFiles how) {
  if (name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    return fail(Code::bad_file_name, "the name of a file", EINVAL);
  SHIMA_TRY_ASSIGN(const Beneath beneath, Beneath::open(directory));
  SHIMA_TRY_ASSIGN(const PathBeneath parent, beneath.object(below));
  SHIMA_TRY_ASSIGN(const std::string real, Beneath::path_of(parent.fd.get()));
  return shown(files_beside_here(parent.path + "/" + name, how, real + "/" + name), parent, real);
}

}  // namespace shima::iod
