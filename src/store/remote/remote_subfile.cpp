#include "store/remote/remote_subfile.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "store/remote/transfer.h"

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

class RemoteSubfile final : public Subfile {
 public:
  RemoteSubfile(std::unique_ptr<Connection> connection, const Facts& facts, std::string path)
      : connection_(std::move(connection)), facts_(facts), path_(std::move(path)) {}

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

  void will_need(TargetRange range) override {
    std::ignore = call(request(Op::will_need, range.begin.value, range.end.value));
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
    wanted.head.flags = exclusive ? 1 : 0;
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

  Status close() override {
    const Status closed = status_of(call(request(Op::close)));
    const std::lock_guard hold(mutex_);
    keep_connection(std::exchange(connection_, nullptr));
    return closed;
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
    return connection_ ? Status{} : Status(fail(Code::bad_handle, path_ + " is closed", EBADF));
  }

  Result<Reply> call(const Request& wanted) {
    const std::lock_guard hold(mutex_);
    SHIMA_TRY(is_open());
    return connection_->call(wanted);
  }

  // How many bytes were moved up to the first that could not be, which is the end of the file.
  Result<std::uint64_t> transfer(std::span<const ApartRun> runs, Op op) {
    const std::lock_guard hold(mutex_);
    SHIMA_TRY(is_open());
    TransferCutter cutter(runs);
    std::deque<TransferPart> under_way;
    Status failed;
    std::uint64_t moved = 0;
    bool stops = false;
    while (!under_way.empty() || (!cutter.done() && !stops)) {
      if (!stops && !cutter.done() && has_room(under_way)) {
        under_way.push_back(cutter.next());
        SHIMA_TRY(send(under_way.back(), op));
        continue;
      }
      const TransferPart part = std::move(under_way.front());
      under_way.pop_front();
      const auto done = receive(part, op);
      if (connection_->is_broken()) return std::unexpected(done.error());
      if (!done && failed) failed = status_of(done);
      if (done && !stops) moved += *done;
      stops = stops || !done || *done < part.len_bytes;
    }
    if (!failed) return std::unexpected(failed.error());
    return moved;
  }

  static bool has_room(const std::deque<TransferPart>& under_way) {
    const bool many = std::ranges::any_of(
        under_way, [](const TransferPart& part) { return part.runs.size() > many_runs; });
    return under_way.size() < (many ? most_with_many_runs : most_under_way);
  }

  Status send(const TransferPart& part, Op op) {
    Request wanted = request(op);
    wanted.runs = part.runs;
    return connection_->send(std::move(wanted), op == Op::write ? part.pieces : no_pieces());
  }

  Result<std::uint64_t> receive(const TransferPart& part, Op op) {
    SHIMA_TRY_ASSIGN(const Reply reply,
                     connection_->receive(op == Op::read ? part.pieces : no_pieces()));
    return op == Op::read ? reply.data_bytes : part.len_bytes;
  }

  static const std::vector<iovec>& no_pieces() {
    static const std::vector<iovec> none;
    return none;
  }

  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;  // null: closed
  Facts facts_;
  std::string path_;
};

}  // namespace

std::unique_ptr<Subfile> make_remote_subfile(std::unique_ptr<Connection> connection,
                                             const Facts& facts, std::string path) {
  return std::make_unique<RemoteSubfile>(std::move(connection), facts, std::move(path));
}

}  // namespace shima::remote
