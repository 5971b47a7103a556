#include "store/remote/remote_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "store/remote/connection.h"
#include "store/remote/far_steps.h"
#include "store/remote/own_umask.h"
#include "store/remote/remote_subfile.h"

namespace shima::remote {
namespace {

// An opening of a subfile that has been asked for.
class FarSubfile final : public FarAnswer<std::unique_ptr<Subfile>> {
 public:
  FarSubfile(const Node& node, const std::string& key_file, const Request& wanted, std::string path)
      : opening_(node, key_file, wanted),
        path_(std::move(path)),
        open_again_([=] { return open_over_connection(node, key_file, wanted); }) {}

  bool advance() override {
    if (!is_done_) opened_ = opening_.finish();
    is_done_ = true;
    return false;
  }
  Result<std::unique_ptr<Subfile>> result() override {
    SHIMA_TRY(status_of(opened_));
    return make_remote_subfile(*std::move(opened_), std::move(path_), std::move(open_again_));
  }

 private:
  FarOpening opening_;
  std::string path_;
  std::function<Result<Opened>()> open_again_;
  bool is_done_ = false;
  Result<Opened> opened_;
};

class RemoteFiles final : public TargetFiles {
 public:
  RemoteFiles(Place place, std::string key_file)
      : place_(std::move(place)), key_file_(std::move(key_file)) {}

  int directory_fd() const override { return -1; }

  Result<struct stat> examine(const std::string& name) override {
    return examine_by(request(Op::examine, name));
  }

  Result<std::vector<std::string>> names() override {
    std::vector<std::string> all;
    while (true) {
      std::vector<std::byte> answer;
      SHIMA_TRY(call(request(Op::list, all.empty() ? std::string() : all.back()), answer,
                     most_data_bytes));
      SHIMA_TRY_ASSIGN(const auto some, decode_words(answer));
      if (some.empty()) return all;
      // The node lists in order; otherwise this would not end.
      if (!all.empty() && some.front() <= all.back())
        return fail(Code::io, "listing " + path_of({}), EPROTO);
      all.insert(all.end(), some.begin(), some.end());
    }
  }

  Result<Text> read_text(const std::string& name, std::size_t most_bytes) override {
    std::vector<std::byte> answer;
    const std::size_t most = std::min(most_bytes, most_data_bytes);
    SHIMA_TRY_ASSIGN(
        const Reply reply,
        call(request(Op::read_text, name, static_cast<std::int64_t>(most)), answer, most));
    return Text{{reinterpret_cast<const char*>(answer.data()), answer.size()},
                static_cast<uid_t>(reply.value)};
  }

  Status write_text(const std::string& name, std::string_view text, mode_t mode) override {
    if (text.size() > most_data_bytes) return fail_errno(EFBIG, "writing " + path_of(name));
    SHIMA_TRY_ASSIGN(auto connection, take_connection(place_.node, key_file_));
    const auto written =
        connection->call(request(Op::write_text, name, mode & ~own_umask()),
                         std::as_bytes(std::span<const char>(text.data(), text.size())));
    keep_connection(std::move(connection));
    return status_of(written);
  }

  Status make(const std::string& name, mode_t mode) override {
    return status_of(call(request(Op::make, name, mode & ~own_umask())));
  }
  Status truncate(const std::string& name, std::uint64_t size_bytes) override {
    return status_of(call(request(Op::set_size, name, as_signed(size_bytes))));
  }
  Status remove(const std::string& name) override {
    return status_of(call(request(Op::remove, name)));
  }
  Status link_into(TargetFiles& there, const std::string& name) override {
    const auto* const goal = dynamic_cast<const RemoteFiles*>(&there);
    if (goal == nullptr || goal->place_.node != place_.node)
      return fail_errno(EXDEV, "linking " + path_of(name));
    Request wanted = request(Op::link_part, name);
    wanted.words.push_back(goal->place_.target);
    return status_of(call(wanted));
  }
  Status set_mode(const std::string& name, mode_t mode) override {
    return status_of(call(request(Op::set_mode, name, mode)));
  }
  Status set_times(const std::string& name, const FileTimes& times) override {
    Request wanted = request(Op::set_part_times, name);
    wanted.words.push_back(encode_times(times));
    return status_of(call(wanted));
  }
  // All files belong to the user of the node: users of this machine may have other numbers there.
  Status give_new(const std::string& name, const struct stat& like) override {
    return set_mode(name, like.st_mode & 0777U);
  }
  bool is_being_written(const std::string& name) override {
    const auto reply = call(request(Op::is_being_written, name));
    return !reply || reply->value != 0;
  }
  Status sync() override { return status_of(call(request(Op::sync_names, {}))); }

  Result<std::unique_ptr<Subfile>> open(const std::string& name,
                                        const SubfileOpen& wanted) override {
    const auto asked = begin_open(name, wanted);
    std::ignore = asked->advance();
    return asked->result();
  }

  std::unique_ptr<FarAnswer<std::unique_ptr<Subfile>>> begin_open(
      const std::string& name, const SubfileOpen& wanted) override {
    const std::int64_t how = (wanted.read ? Opening::read : 0) |
                             (wanted.write ? Opening::write : 0) |
                             (wanted.direct_read ? Opening::direct_read : 0) |
                             (wanted.direct_write ? Opening::direct_write : 0);
    return std::make_unique<FarSubfile>(place_.node, key_file_, request(Op::open, name, how),
                                        path_of(name));
  }

  std::unique_ptr<FarAnswer<std::vector<StepResult>>> begin(std::span<const Step> steps) override {
    return begin_steps(take_connection(place_.node, key_file_), place_.target, steps);
  }

  Result<std::unique_ptr<WriterLease>> lease(const std::string& name, Sole sole) override;

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return fmt::format("{}{}/{}/{}", scheme, place_.node.name(), place_.target, name);
  }

  [[nodiscard]] Request request(Op op, const std::string& name, std::int64_t first = 0) const {
    Request made;
    made.head.op = static_cast<std::uint32_t>(op);
    made.head.first = first;
    made.words = {place_.target, name};
    return made;
  }

  template <class... Answer>
  Result<Reply> call(const Request& wanted, Answer&&... answer) const {
    SHIMA_TRY_ASSIGN(auto connection, take_connection(place_.node, key_file_));
    const auto reply = connection->call(wanted, std::forward<Answer>(answer)...);
    keep_connection(std::move(connection));
    return reply;
  }

  Result<struct stat> examine_by(const Request& wanted) const {
    std::vector<std::byte> answer;
    SHIMA_TRY(call(wanted, answer, sizeof(Facts)));
    Facts facts;
    if (answer.size() != sizeof facts) return fail(Code::io, "examining a file", EPROTO);
    std::memcpy(&facts, answer.data(), sizeof facts);
    return stat_of(facts);
  }

  Place place_;
  std::string key_file_;
};

// The node holds the lease while the connection lives.
class RemoteLease final : public WriterLease {
 public:
  explicit RemoteLease(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  RemoteLease(const RemoteLease&) = delete;
  RemoteLease& operator=(const RemoteLease&) = delete;
  ~RemoteLease() override {
    if (call(Op::end_lease)) keep_connection(std::move(connection_));
  }

  Result<bool> holds() override {
    SHIMA_TRY_ASSIGN(const Reply reply, call(Op::holds));
    return reply.value != 0;
  }

  Result<struct stat> facts() override {
    Facts facts;
    const iovec piece{&facts, sizeof facts};
    SHIMA_TRY(connection_->send(request(Op::lease_facts), {}));
    SHIMA_TRY(connection_->receive(std::span(&piece, 1)));
    return stat_of(facts);
  }

 private:
  static Request request(Op op) {
    Request made;
    made.head.op = static_cast<std::uint32_t>(op);
    return made;
  }
  Result<Reply> call(Op op) { return connection_->call(request(op)); }

  std::unique_ptr<Connection> connection_;
};

Result<std::unique_ptr<WriterLease>> RemoteFiles::lease(const std::string& name, Sole sole) {
  SHIMA_TRY_ASSIGN(auto connection, take_connection(place_.node, key_file_));
  const auto taken = connection->call(request(Op::lease, name, sole == Sole::yes ? 1 : 0));
  if (!taken) keep_connection(std::move(connection));
  SHIMA_TRY(taken);
  return std::make_unique<RemoteLease>(std::move(connection));
}

}  // namespace

std::shared_ptr<TargetFiles> remote_files(const Place& place, const std::string& key_file) {
  return std::make_shared<RemoteFiles>(place, key_file);
}

Result<std::string> ask_status(const Node& node, const std::string& key_file) {
  SHIMA_TRY_ASSIGN(auto connection, Connection::open(node, key_file));
  Request wanted;
  wanted.head.op = static_cast<std::uint32_t>(Op::status);
  std::vector<std::byte> answer;
  SHIMA_TRY(connection->call(wanted, answer, most_data_bytes));
  return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

}  // namespace shima::remote
