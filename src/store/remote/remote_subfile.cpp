#include "store/remote/remote_subfile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "store/remote/transfer.h"
#include "store/subfile/lock_holder.h"

namespace shima::remote {
namespace {

// Parts of a transfer under way. Requests that the node has not yet received must fit into the
// buffers of the sockets while it sends, or both would wait for each other: so few with many runs.
constexpr std::size_t most_under_way = 4;
constexpr std::size_t most_with_many_runs = 2;
constexpr std::size_t many_runs = 64;

Request request(Op op, std::int64_t first = 0, std::int64_t second = 0) {
  Request made;
  made.head.op = static_cast<std::uint32_t>(op);
  made.head.first = first;
  made.head.second = second;
  return made;
}

constexpr std::string_view lost_connection =
    "the connection has ended; open the file again. Communicating";

std::uint64_t identity_of(const Node& node, const Facts& facts) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  const std::uint64_t all =
      ((std::hash<std::string>{}(node.name()) * odd) ^ facts.device) * odd ^ facts.inode;
  return all == 0 ? 1 : all;
}

const std::vector<iovec>& no_pieces() {
  static const std::vector<iovec> none;
  return none;
}

// Moves runs in parts, several of which are under way. Of several transfers, each begins with one
// part, so that all nodes have work before this thread waits for room to send.
class FarTransfer final : public FarRequest {
 public:
  FarTransfer(std::unique_lock<std::mutex> hold, Connection& connection,
              std::span<const ApartRun> runs, Op op)
      : hold_(std::move(hold)), connection_(connection), cutter_(runs), op_(op) {
    if (!cutter_.done()) send_next();
  }

  bool advance() override {
    while (!stops_ && !cutter_.done() && has_room()) send_next();
    if (under_way_.empty()) return false;
    receive_one();
    return !under_way_.empty() || (!stops_ && !cutter_.done());
  }

  Result<std::uint64_t> result() override {
    if (!failed_) return std::unexpected(failed_.error());
    return moved_;
  }

 private:
  void send_next() {
    under_way_.push_back(cutter_.next());
    fail_by(send(under_way_.back()));
  }

  void receive_one() {
    const TransferPart part = std::move(under_way_.front());
    under_way_.pop_front();
    const auto reply = connection_.receive(op_ == Op::read ? part.pieces : no_pieces());
    fail_by(status_of(reply));
    if (!reply) return;
    const std::uint64_t len = op_ == Op::read ? reply->data_bytes : part.len_bytes;
    if (!stops_) moved_ += len;
    stops_ = stops_ || len < part.len_bytes;
  }

  // After a failure of the connection no reply comes.
  void fail_by(const Status& status) {
    if (status) return;
    if (failed_) failed_ = status;
    stops_ = true;
    if (connection_.is_broken()) under_way_.clear();
  }

  [[nodiscard]] bool has_room() const {
    const bool many = std::ranges::any_of(
        under_way_, [](const TransferPart& part) { return part.runs.size() > many_runs; });
    return under_way_.size() < (many ? most_with_many_runs : most_under_way);
  }

  Status send(TransferPart& part) {
    Request wanted = request(op_);
    wanted.runs = std::move(part.runs);
    const auto count = wanted.runs.size();
    const Status sent =
        connection_.send(std::move(wanted), op_ == Op::write ? part.pieces : no_pieces());
    part.runs.resize(count);  // has_room() counts them
    return sent;
  }

  std::unique_lock<std::mutex> hold_;
  Connection& connection_;
  TransferCutter cutter_;
  Op op_;
  std::deque<TransferPart> under_way_;
  Status failed_;
  std::uint64_t moved_ = 0;
  bool stops_ = false;
};

// A request that moves no data. After Op::close, the connection is kept for other files.
class FarCall final : public FarRequest {
 public:
  FarCall(std::unique_lock<std::mutex> hold, std::unique_ptr<Connection>& connection, Op op)
      : hold_(std::move(hold)),
        connection_(connection),
        op_(op),
        sent_(connection->send(request(op), {})) {}

  bool advance() override {
    if (is_done_) return false;
    is_done_ = true;
    if (sent_) reply_ = connection_->receive({});
    if (op_ == Op::close) keep_connection(std::exchange(connection_, nullptr));
    return false;
  }
  Result<std::uint64_t> result() override {
    SHIMA_TRY(sent_);
    SHIMA_TRY(reply_);
    return as_unsigned(reply_->value);
  }

 private:
  std::unique_lock<std::mutex> hold_;
  std::unique_ptr<Connection>& connection_;
  Op op_;
  Status sent_;
  bool is_done_ = false;
  Result<Reply> reply_ = Reply{};
};

class RemoteSubfile final : public Subfile {
 public:
  RemoteSubfile(Opened opened, std::string path, std::function<Result<Opened>()> open_again)
      : connection_(std::move(opened.connection)),
        facts_(opened.facts),
        path_(std::move(path)),
        identity_(identity_of(connection_->node(), facts_)),
        directed_(std::move(open_again), facts_) {}

  Status write(TargetOffset offset, std::span<const iovec> pieces) override {
    const ApartRun run{offset, pieces, shima::bytes_in(pieces)};
    return status_of(transfer(std::span(&run, 1), Op::write));
  }

  Result<std::uint64_t> read(TargetOffset offset, std::span<const iovec> pieces) override {
    const ApartRun run{offset, pieces, shima::bytes_in(pieces)};
    return transfer(std::span(&run, 1), Op::read);
  }

  bool move_apart(std::span<const ApartRun> runs, bool writing) override {
    std::uint64_t wanted = 0;
    for (const ApartRun& run : runs) wanted += run.len_bytes;
    const auto moved = transfer(runs, writing ? Op::write : Op::read);
    return moved && *moved == wanted;
  }

  // What is cached is cached at the node: to ask would cost as much as to read.
  bool cached(TargetOffset) override { return false; }
  bool is_far() const override { return true; }
  std::uint64_t node_identity() const override { return identity_; }

  // After the end of the file's own connection, the node may have lost what was written over it.
  Result<std::unique_ptr<DirectedPart>> join(const DirectedCall& call) override {
    {
      const std::lock_guard hold(mutex_);
      SHIMA_TRY(is_open());
      if (connection_->has_ended()) return connection_->failure(lost_connection, ECONNRESET);
    }
    return directed_.join(call);
  }

  std::unique_ptr<FarRequest> begin_move(std::span<const ApartRun> runs, bool writing) override {
    std::unique_lock hold(mutex_);
    if (!is_open()) return nullptr;
    return std::make_unique<FarTransfer>(std::move(hold), *connection_, runs,
                                         writing ? Op::write : Op::read);
  }
  std::unique_ptr<FarRequest> begin(FarOp op) override {
    if (op == FarOp::close) directed_.close();
    std::unique_lock hold(mutex_);
    if (!is_open()) return nullptr;
    const Op asked = op == FarOp::size ? Op::size : op == FarOp::sync ? Op::sync : Op::close;
    return std::make_unique<FarCall>(std::move(hold), connection_, asked);
  }

  void will_need(TargetRange range) override {
    const std::lock_guard hold(mutex_);
    if (is_open())
      std::ignore = connection_->tell(request(Op::will_need, range.begin.value, range.end.value));
  }

  Result<std::uint64_t> size() override {
    SHIMA_TRY_ASSIGN(const Reply reply, call(request(Op::size)));
    return as_unsigned(reply.value);
  }

  Result<std::optional<TargetOffset>> next_data(TargetOffset from) override {
    SHIMA_TRY_ASSIGN(const Reply reply, call(request(Op::next_data, from.value)));
    if (reply.value < 0) return std::nullopt;
    return TargetOffset{reply.value};
  }

  Status truncate(std::uint64_t size_bytes) override {
    return status_of(call(request(Op::truncate, as_signed(size_bytes))));
  }
  Status preallocate(std::uint64_t size_bytes) override {
    return status_of(call(request(Op::preallocate, as_signed(size_bytes))));
  }
  Status sync() override { return status_of(call(request(Op::sync))); }

  // All clients of a node see one cache.
  Status publish() override { return {}; }
  void look_again() override {}
  bool close_to_open() const override { return false; }
  std::uint64_t local_identity() const override { return 0; }
  bool locks_stay_on_node() const override { return false; }

  Result<bool> try_lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    Request wanted = request(Op::try_lock, offset.value, as_signed(len_bytes));
    wanted.head.flags = exclusive ? Flag::exclusive : 0;
    SHIMA_TRY_ASSIGN(const Reply reply, call(wanted));
    return reply.value != 0;
  }

  // A request that waited at the node would keep other threads, which may have the lock, from
  // using the connection.
  Status lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    constexpr std::chrono::microseconds longest_pause{10'000};
    std::chrono::microseconds pause{100};
    while (true) {
      SHIMA_TRY_ASSIGN(const bool locked, try_lock(offset, len_bytes, exclusive));
      if (locked) return {};
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, longest_pause);
    }
  }

  void unlock(TargetOffset offset, std::uint64_t len_bytes) override {
    std::ignore = call(request(Op::unlock, offset.value, as_signed(len_bytes)));
  }

  std::string lock_holder(TargetOffset offset, std::uint64_t len_bytes) override {
    const std::lock_guard hold(mutex_);
    std::vector<std::byte> name;
    const auto asked = caught([&]() -> Result<std::string> {
      SHIMA_TRY(is_open());
      const Request wanted = request(Op::lock_holder, offset.value, as_signed(len_bytes));
      SHIMA_TRY(connection_->call(wanted, name, most_word_bytes));
      return std::string(reinterpret_cast<const char*>(name.data()), name.size());
    });
    return asked ? *asked : std::string(unknown_lock_holder);
  }

  Status close() override {
    if (const auto asked = begin(FarOp::close)) {
      std::ignore = asked->advance();
      return status_of(asked->result());
    }
    const std::lock_guard hold(mutex_);
    Status why = is_open();
    connection_.reset();
    return why;
  }

  Result<FileIdentity> identity() override { return FileIdentity{facts_.device, facts_.inode}; }
  Result<uid_t> owner() override {
    Facts now;
    const iovec piece{&now, sizeof now};
    const std::lock_guard hold(mutex_);
    SHIMA_TRY(is_open());
    SHIMA_TRY(connection_->send(request(Op::facts), {}));
    SHIMA_TRY(connection_->receive(std::span(&piece, 1)));
    return now.owner;
  }

 private:
  [[nodiscard]] Status is_open() const {
    if (!connection_) return fail(Code::bad_handle, path_ + " is closed", EBADF);
    if (directed_.has_lost()) return connection_->failure(lost_connection, ECONNRESET);
    return {};
  }

  Result<Reply> call(const Request& wanted) {
    const std::lock_guard hold(mutex_);
    SHIMA_TRY(is_open());
    return connection_->call(wanted);
  }

  // How many bytes were moved up to the first that could not be, which is the end of the file.
  Result<std::uint64_t> transfer(std::span<const ApartRun> runs, Op op) {
    std::unique_lock hold(mutex_);
    SHIMA_TRY(is_open());
    FarTransfer all(std::move(hold), *connection_, runs, op);
    while (all.advance()) {
    }
    return all.result();
  }

  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;  // null: closed
  Facts facts_;
  std::string path_;
  std::uint64_t identity_;
  DirectedCalls directed_;
};

}  // namespace

std::unique_ptr<Subfile> make_remote_subfile(Opened opened, std::string path,
                                             std::function<Result<Opened>()> open_again) {
  return std::make_unique<RemoteSubfile>(std::move(opened), std::move(path), std::move(open_again));
}

}  // namespace shima::remote
