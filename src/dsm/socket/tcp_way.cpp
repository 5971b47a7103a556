// The way over TCP: a connection from each task to each other one, and a thread for each that
// serves it.
//
// A request is its head, and data if it writes. A plain write has no reply; TCP keeps the order, so
// the reply to a fence says that all before it is done, and how many of them were refused. A
// Server admits the connections of tasks, which show a secret; others do not delay them.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "base/process/quiet_thread.h"
#include "dsm/socket/endpoints.h"
#include "dsm/socket/socket_way.h"
#include "net/server.h"

namespace shima::dsm {
namespace {

constexpr std::chrono::seconds connect_timeout{30};
constexpr std::size_t most_strangers = 128;  // more than tasks, which are that at first

iovec piece(const void* data, std::size_t len_bytes) {
  return {const_cast<void*>(data), len_bytes};
}

// A connection that another task has made, and the thread that serves it.
class Client {
 public:
  Client(UniqueFd socket, Served served, bool spins)
      : socket_(std::move(socket)), served_(served), spins_(spins) {}
  [[nodiscard]] Status start() {
    SHIMA_TRY_ASSIGN(thread_, start_quiet_thread([this] {
                       while (serve_one()) {
                       }
                       ::shutdown(socket_.get(), SHUT_RDWR);
                     }));
    return {};
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

 private:
  [[nodiscard]] bool serve_one() {
    Request request;
    if (!receive_exactly(socket_.get(), &request, sizeof request, spins_)) return false;
    switch (request.kind) {
      case Request::Kind::read: {
        const auto bytes = served_.bytes_of(request);
        return answer({bytes ? 0U : 1U, 0}, bytes.value_or(std::span<std::byte>()));
      }
      case Request::Kind::write:
      case Request::Kind::write_complete:
        return take_data(request);
      case Request::Kind::rmw: {
        const auto value = served_.rmw(request);
        return answer({value ? 0U : 1U, value.value_or(0)});
      }
      case Request::Kind::fence:
        return answer({std::exchange(refused_, 0), 0});
    }
    log(LogLevel::error, "dsm: a request that is malformed has come by TCP; its connection ends");
    return false;
  }
  [[nodiscard]] bool take_data(const Request& request) {
    const auto bytes = served_.bytes_of(request);
    const bool is_taken =
        bytes ? receive_all(socket_.get(), bytes->data(), bytes->size()) : drop(request.len_bytes);
    if (!is_taken) return false;
    if (request.kind == Request::Kind::write_complete) return answer({bytes ? 0U : 1U, 0});
    if (!bytes) ++refused_;
    return true;
  }
  [[nodiscard]] bool drop(std::uint64_t len_bytes) {
    std::array<std::byte, 4096> dropped;
    while (len_bytes > 0) {
      const std::size_t part = std::min<std::uint64_t>(len_bytes, dropped.size());
      if (!receive_all(socket_.get(), dropped.data(), part)) return false;
      len_bytes -= part;
    }
    return true;
  }
  [[nodiscard]] bool answer(Reply reply, std::span<const std::byte> data = {}) {
    return send_both(socket_.get(), piece(&reply, sizeof reply), piece(data.data(), data.size()));
  }

  UniqueFd socket_;
  Served served_;
  bool spins_;
  std::uint64_t refused_ = 0;  // writes since the last fence
  std::thread thread_;
};

class TcpWay final : public SocketWay {
 public:
  TcpWay(const SegmentView& own, int tasks, SocketOptions options)
      : served_(own), options_(std::move(options)), peers_(static_cast<std::size_t>(tasks)) {}
  [[nodiscard]] Status start(std::span<const SocketAddress> addresses);
  ~TcpWay() override;

  [[nodiscard]] Status connect(std::span<const ServiceAddress> all) override;
  [[nodiscard]] Status read(int task, std::uint64_t offset, std::span<std::byte> into) override;
  [[nodiscard]] Status write(int task, std::uint64_t offset, std::span<const std::byte> data,
                             bool complete) override;
  [[nodiscard]] Result<std::uint64_t> rmw(int task, std::uint64_t offset,
                                          const Rmw& request) override;
  [[nodiscard]] Status fence() override;

 private:
  struct Peer {
    std::mutex turn;  // of requests to it
    UniqueFd socket;
    bool has_written = false;  // since the last fence
  };
  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] Status send(int task, const Request& request, std::span<const std::byte> data = {});
  [[nodiscard]] Result<Reply> receive_reply(int task);
  [[nodiscard]] Result<Reply> ask(int task, const Request& request,
                                  std::span<const std::byte> data = {});
  // The caller has the peer's turn.
  [[nodiscard]] Result<Reply> ask_in_turn(int task, const Request& request,
                                          std::span<const std::byte> data = {});
  [[nodiscard]] static std::unexpected<Error> lost(int task);
  void admit(UniqueFd socket);

  Served served_;
  SocketOptions options_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Client>> clients_;  // of the server's thread
  std::unique_ptr<Server> server_;                // until all other tasks have connected
};

Status TcpWay::start(std::span<const SocketAddress> addresses) {
  Server::Handlers handlers{
      .serve = [](Server&, Server::Visitor&) { return false; },
      .welcome =
          [this](Server&, Server::Visitor& visitor) {
            admit(std::move(visitor.socket));
            return false;  // its thread serves it
          },
      .over = [this](Server&) { return clients_.size() + 1 >= peers_.size(); }};
  SHIMA_TRY_ASSIGN(
      server_, Server::start(addresses, {.most_strangers = most_strangers}, std::move(handlers)));
  address_ = server_->address();
  return {};
}

TcpWay::~TcpWay() {
  server_.reset();  // it stores clients
}

void TcpWay::admit(UniqueFd socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return;
  close_if_unreachable(socket.get(), node_timeout());
  auto client = std::make_unique<Client>(std::move(socket), served_, options_.spins);
  if (client->start()) clients_.push_back(std::move(client));
}

Status TcpWay::connect(std::span<const ServiceAddress> all) {
  for (int task = 0; task < static_cast<int>(all.size()); ++task) {
    if (task == options_.task) continue;
    auto socket = connect_to(all[static_cast<std::size_t>(task)], connect_timeout);
    if (!socket)
      return fail(Code::peer_lost,
                  fmt::format("connecting to task {} by TCP: {}", task, describe(socket.error())));
    close_if_unreachable(socket->get(), node_timeout());
    peer(task).socket = *std::move(socket);
  }
  return {};
}

std::unexpected<Error> TcpWay::lost(int task) {
  return fail(Code::peer_lost, fmt::format("the TCP connection to task {} has ended", task), errno);
}

// The caller has the peer's turn.
Status TcpWay::send(int task, const Request& request, std::span<const std::byte> data) {
  if (send_both(peer(task).socket.get(), piece(&request, sizeof request),
                piece(data.data(), data.size())))
    return {};
  return lost(task);
}

Result<Reply> TcpWay::receive_reply(int task) {
  Reply reply;
  if (!receive_exactly(peer(task).socket.get(), &reply, sizeof reply, options_.spins))
    return lost(task);
  return reply;
}

Result<Reply> TcpWay::ask(int task, const Request& request, std::span<const std::byte> data) {
  const std::lock_guard hold(peer(task).turn);
  return ask_in_turn(task, request, data);
}

Result<Reply> TcpWay::ask_in_turn(int task, const Request& request,
                                  std::span<const std::byte> data) {
  SHIMA_TRY(send(task, request, data));
  return receive_reply(task);
}

Status TcpWay::read(int task, std::uint64_t offset, std::span<std::byte> into) {
  const std::lock_guard hold(peer(task).turn);
  SHIMA_TRY(send(task, {Request::Kind::read, 0, offset, into.size(), {}}));
  SHIMA_TRY_ASSIGN(const Reply reply, receive_reply(task));
  if (reply.refused != 0) return refused_by(task);
  if (!receive_exactly(peer(task).socket.get(), into.data(), into.size(), options_.spins))
    return lost(task);
  return {};
}

Status TcpWay::write(int task, std::uint64_t offset, std::span<const std::byte> data,
                     bool complete) {
  if (!complete) {
    const std::lock_guard hold(peer(task).turn);
    peer(task).has_written = true;
    return send(task, {Request::Kind::write, 0, offset, data.size(), {}}, data);
  }
  SHIMA_TRY_ASSIGN(const Reply reply,
                   ask(task, {Request::Kind::write_complete, 0, offset, data.size(), {}}, data));
  return reply.refused == 0 ? Status{} : refused_by(task);
}

Result<std::uint64_t> TcpWay::rmw(int task, std::uint64_t offset, const Rmw& request) {
  SHIMA_TRY_ASSIGN(const Reply reply, ask(task, Request::of(offset, request)));
  if (reply.refused != 0) return refused_by(task);
  return reply.value;
}

Status TcpWay::fence() {
  Status status;
  for (int task = 0; task < static_cast<int>(peers_.size()); ++task) {
    const std::lock_guard hold(peer(task).turn);
    if (!std::exchange(peer(task).has_written, false)) continue;
    const auto reply = ask_in_turn(task, {});
    if (!reply) status = std::unexpected(reply.error());
    if (reply && reply->refused != 0 && status) status = refused_by(task);
  }
  return status;
}

}  // namespace

Result<std::unique_ptr<SocketWay>> serve_by_tcp(const SegmentView& own, int tasks,
                                                SocketOptions options,
                                                std::span<const SocketAddress> addresses) {
  auto way = std::make_unique<TcpWay>(own, tasks, std::move(options));
  SHIMA_TRY(way->start(addresses));
  return way;
}

}  // namespace shima::dsm
