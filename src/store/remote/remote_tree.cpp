#include "store/remote/remote_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "store/remote/connection.h"
#include "store/remote/own_umask.h"
#include "store/remote/remote_files.h"
#include "store/remote/remote_subfile.h"
#include "store/subfile/file_steps.h"

namespace shima::remote {
namespace {

std::string_view text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Facts> facts_in(std::span<const std::byte> bytes) {
  Facts facts;
  if (bytes.size() < sizeof facts) return fail(Code::io, "examining a file", EPROTO);
  std::memcpy(&facts, bytes.data(), sizeof facts);
  return facts;
}

Result<FarPath> parse(const std::string& path) {
  auto found = parse_far_path(path);
  if (!found)
    return fail(Code::bad_file_name,
                path +
                    " is not of the form iod://HOST:PORT/NAME/path, the path of a file in a "
                    "directory that an I/O node serves",
                EINVAL);
  if (found->path.size() > most_word_bytes) return fail_errno(ENAMETOOLONG, "using " + path);
  return *std::move(found);
}

Request request_for(Op op, const FarPath& place, std::int64_t first = 0, std::int64_t second = 0) {
  Request made;
  made.head.op = static_cast<std::uint32_t>(op);
  made.head.first = first;
  made.head.second = second;
  made.words = {place.directory, place.path};
  return made;
}

// The node holds the lock while the connection lives.
class RemoteHold final : public DirectoryHold {
 public:
  explicit RemoteHold(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  RemoteHold(const RemoteHold&) = delete;
  RemoteHold& operator=(const RemoteHold&) = delete;
  ~RemoteHold() override {
    Request end;
    end.head.op = static_cast<std::uint32_t>(Op::unlock_directory);
    if (connection_->call(end)) keep_connection(std::move(connection_));
  }

  void admit_writers_of(const std::string& path) override {
    if (const auto place = parse(path))
      std::ignore = connection_->tell(request_for(Op::admit_writers, *place));
  }

 private:
  std::unique_ptr<Connection> connection_;
};

class RemoteTree final : public FileTree {
 public:
  explicit RemoteTree(FindKeyFile find_key_file) : find_key_file_(std::move(find_key_file)) {}

  Result<struct stat> examine(const std::string& path, Links links) override {
    std::vector<std::byte> answer;
    SHIMA_TRY(ask(Op::examine_path, path, answer, sizeof(Facts), links == Links::follow ? 1 : 0));
    SHIMA_TRY_ASSIGN(const Facts facts, facts_in(answer));
    return stat_of(facts);
  }

  Result<std::string> real_path(const std::string& path) override {
    std::vector<std::byte> answer;
    SHIMA_TRY(ask(Op::real_path, path, answer, most_word_bytes));
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    const std::string_view below = text_in(answer);
    return fmt::format("{}{}/{}{}{}", scheme, place.node.name(), place.directory,
                       below.empty() ? "" : "/", below);
  }

  Result<std::vector<Entry>> entries(const std::string& directory) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(directory));
    std::vector<Entry> all;
    while (true) {
      Request wanted = request_for(Op::list_paths, place);
      wanted.words.push_back(all.empty() ? std::string() : all.back().name);
      std::vector<std::byte> answer;
      SHIMA_TRY(call(place.node, wanted, answer, most_data_bytes));
      SHIMA_TRY_ASSIGN(const auto words, decode_words(answer));
      if (words.empty()) return all;
      // The node lists in order; otherwise this would not end.
      if (words.size() % 2 != 0 || (!all.empty() && words[1] <= all.back().name))
        return fail(Code::io, "listing " + directory, EPROTO);
      for (std::size_t i = 0; i < words.size(); i += 2) {
        SHIMA_TRY_ASSIGN(const Facts facts, facts_in(std::as_bytes(std::span(words[i]))));
        all.push_back({words[i + 1], stat_of(facts)});
      }
    }
  }

  Result<std::optional<Text>> read_master(const std::string& path) override {
    std::vector<std::byte> answer;
    SHIMA_TRY_ASSIGN(const Reply reply, ask(Op::read_master, path, answer, most_data_bytes));
    if (reply.value == 0) return std::nullopt;
    SHIMA_TRY_ASSIGN(const Facts facts, facts_in(answer));
    return Text{std::string(text_in(std::span(answer).subspan(sizeof facts))), stat_of(facts)};
  }

  Result<std::string> read_text(const std::string& path, std::size_t most_bytes) override {
    std::vector<std::byte> answer;
    const std::size_t most = std::min(most_bytes, most_data_bytes);
    SHIMA_TRY(ask(Op::read_path, path, answer, most, as_signed(most)));
    return std::string(text_in(answer));
  }

  Status create_text(const std::string& path, std::string_view text, mode_t mode) override {
    return send(Op::create_text, path, text, mode & ~own_umask());
  }
  Status replace_master(const std::string& path, std::string_view text, Replacing how) override {
    return send(Op::replace_master, path, text, static_cast<std::int64_t>(how));
  }
  Status write_text(const std::string& path, std::string_view text, mode_t mode) override {
    return send(Op::write_path, path, text, mode & ~own_umask());
  }

  Status remove(const std::string& path) override { return tell(Op::remove_path, path); }
  Status rename(const std::string& from, const std::string& to) override {
    return tell_both(Op::rename_path, "renaming", from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    return tell_both(Op::link_path, "linking", from, to);
  }
  Status make_symlink(const std::string& path, const std::string& text) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    if (text.size() > most_word_bytes) return fail_errno(ENAMETOOLONG, "making the link " + path);
    Request wanted = request_for(Op::make_symlink, place);
    wanted.words.push_back(text);
    return status_of(call(place.node, wanted));
  }
  Result<std::string> read_symlink(const std::string& path) override {
    std::vector<std::byte> answer;
    SHIMA_TRY(ask(Op::read_symlink, path, answer, most_word_bytes));
    return std::string(text_in(answer));
  }
  Status make_directory(const std::string& path, mode_t mode) override {
    return tell(Op::make_directory, path, mode & ~own_umask());
  }
  Status remove_directory(const std::string& path) override {
    return tell(Op::remove_directory, path);
  }
  Status remove_own_directory(const std::string& directory) override {
    return tell(Op::remove_own_directory, directory);
  }
  Status set_mode(const std::string& path, mode_t mode) override {
    return tell(Op::set_path_mode, path, mode);
  }
  Status set_times(const std::string& path, const FileTimes& times) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    Request wanted = request_for(Op::set_path_times, place);
    wanted.words.push_back(encode_times(times));
    return status_of(call(place.node, wanted));
  }
  Status check_writable(const std::string& directory) override {
    return tell(Op::check_writable, directory);
  }
  Status sync(const std::string& path) override { return tell(Op::sync_path, path); }
  Status sync_directory_of(const std::string& path) override {
    return tell(Op::sync_directory, path);
  }

  Result<std::unique_ptr<Subfile>> open(const SubfileOpen& wanted) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(wanted.path));
    const std::int64_t how =
        (wanted.read ? Opening::read : 0) | (wanted.write ? Opening::write : 0) |
        (wanted.direct_read ? Opening::direct_read : 0) |
        (wanted.direct_write ? Opening::direct_write : 0) | (wanted.create ? Opening::create : 0) |
        (wanted.exclusive ? Opening::exclusive : 0);
    SHIMA_TRY_ASSIGN(const std::string key_file, find_key_file_());
    Request request = request_for(Op::open_path, place, how, wanted.permissions & ~own_umask());
    SHIMA_TRY_ASSIGN(Opened opened, open_over_connection(place.node, key_file, request));
    request.head.first &= ~(Opening::create | Opening::exclusive);
    const auto open_again = [node = place.node, key_file, request] {
      return open_over_connection(node, key_file, request);
    };
    return make_remote_subfile(std::move(opened), wanted.path, open_again);
  }

  Result<std::unique_ptr<DirectoryHold>> try_lock(const std::string& path,
                                                  IfUnused unused) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    SHIMA_TRY_ASSIGN(auto connection, connect(place.node));
    const auto locked =
        connection->call(request_for(Op::lock_directory, place, static_cast<std::int64_t>(unused)));
    if (locked && locked->value != 0) return std::make_unique<RemoteHold>(std::move(connection));
    keep_connection(std::move(connection));
    SHIMA_TRY(locked);
    return nullptr;
  }

  Result<std::shared_ptr<TargetFiles>> files_beside(const std::string& path,
                                                    BesideFiles how) override {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    SHIMA_TRY_ASSIGN(const std::string key_file, find_key_file_());
    const std::size_t slash = place.path.rfind('/');
    const std::string below = place.path.substr(0, slash == std::string::npos ? 0 : slash);
    const std::string name = place.path.substr(slash == std::string::npos ? 0 : slash + 1);
    auto files = remote_files({place.node, place.directory + "/" + below}, key_file);
    const TargetFiles::Step attach{.kind = TargetFiles::Step::Kind::attach,
                                   .name = name,
                                   .bytes = how == BesideFiles::create ? 1U : 0U};
    SHIMA_TRY(take_steps(*files, std::span(&attach, 1)).front().done);
    return files;
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const Node& node) const {
    SHIMA_TRY_ASSIGN(const std::string key_file, find_key_file_());
    return take_connection(node, key_file);
  }

  template <class... Answer>
  Result<Reply> call(const Node& node, const Request& wanted, Answer&&... answer) const {
    SHIMA_TRY_ASSIGN(auto connection, connect(node));
    const auto reply = connection->call(wanted, std::forward<Answer>(answer)...);
    keep_connection(std::move(connection));
    return reply;
  }

  Result<Reply> ask(Op op, const std::string& path, std::vector<std::byte>& answer,
                    std::size_t most_bytes, std::int64_t first = 0) const {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    return call(place.node, request_for(op, place, first), answer, most_bytes);
  }

  Status tell(Op op, const std::string& path, std::int64_t first = 0) const {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    return status_of(call(place.node, request_for(op, place, first)));
  }

  Status tell_both(Op op, std::string_view doing, const std::string& from,
                   const std::string& to) const {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(from));
    const auto goal = parse_far_path(to);
    if (!goal || goal->node != place.node || goal->directory != place.directory)
      return fail_errno(EXDEV, fmt::format("{} {} to {}", doing, from, to));
    Request wanted = request_for(op, place);
    wanted.words.push_back(goal->path);
    return status_of(call(place.node, wanted));
  }

  Status send(Op op, const std::string& path, std::string_view text, std::int64_t first) const {
    SHIMA_TRY_ASSIGN(const FarPath place, parse(path));
    if (text.size() > most_data_bytes) return fail_errno(EFBIG, "writing " + path);
    return status_of(call(place.node, request_for(op, place, first),
                          std::as_bytes(std::span<const char>(text.data(), text.size()))));
  }

  FindKeyFile find_key_file_;
};

}  // namespace

std::unique_ptr<FileTree> make_remote_tree(FindKeyFile find_key_file) {
  return std::make_unique<RemoteTree>(std::move(find_key_file));
}

}  // namespace shima::remote
