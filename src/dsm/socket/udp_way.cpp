// The way over UDP: a socket at each address of the host, with a thread that serves it, and one to
// the first address of each other task that answers.
//
// A plain write is sent and forgotten: a burst that exceeds the receiver's buffer loses data. Every
// datagram of a write says how many bytes its sender had written; so the reply to a fence, which
// says how many have arrived, tells what was lost. Other requests are repeated until the reply
// comes; they have numbers, and a target serves each once, so that an atomic operation is not done
// twice. Datagrams without the target's secret are dropped.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/log.h"
#include "base/process/quiet_thread.h"
#include "dsm/socket/endpoints.h"
#include "dsm/socket/socket_way.h"

namespace shima::dsm {
namespace {

constexpr std::size_t most_data_bytes = std::size_t{60} << 10;  // of a datagram
constexpr int repeat_ms = 20;
constexpr int most_repeats = 100;
// In search of an address that answers: datagrams to each, and how often all are tried.
constexpr int search_repeats = 25;
constexpr std::uint32_t search_rounds = 4;

struct Question {
  ServiceAddress::Secret secret{};
  std::uint64_t task = 0;    // that asks
  std::uint64_t number = 0;  // 0: no reply
  Request request;
};
struct Answer {
  std::uint64_t number = 0;
  Reply reply;
};

template <class Head>
ssize_t send_datagram(int socket, const Head& head, std::span<const std::byte> data,
                      const SocketAddress* to = nullptr, socklen_t to_len = 0) {
  std::array<iovec, 2> pieces{iovec{const_cast<Head*>(&head), sizeof head},
                              iovec{const_cast<std::byte*>(data.data()), data.size()}};
  msghdr message{};
  message.msg_name = const_cast<SocketAddress*>(to);
  message.msg_namelen = to_len;
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

class UdpWay final : public SocketWay {
 public:
  UdpWay(const SegmentView& own, int tasks, SocketOptions options)
      : served_(own),
        options_(std::move(options)),
        peers_(static_cast<std::size_t>(tasks)),
        askers_(static_cast<std::size_t>(tasks)) {}
  [[nodiscard]] Status start(std::span<const SocketAddress> addresses);
  ~UdpWay() override;

  [[nodiscard]] Status connect(std::span<const ServiceAddress> all) override;
  [[nodiscard]] Status read(int task, std::uint64_t offset, std::span<std::byte> into) override;
  [[nodiscard]] Status write(int task, std::uint64_t offset, std::span<const std::byte> data,
                             bool complete) override;
  [[nodiscard]] Result<std::uint64_t> rmw(int task, std::uint64_t offset,
                                          const Rmw& request) override;
  [[nodiscard]] Status fence() override;
  [[nodiscard]] std::uint64_t lost_bytes() override;

 private:
  // A task that this one asks.
  struct Peer {
    std::mutex turn;
    UniqueFd socket;
    ServiceAddress::Secret secret{};
    std::uint64_t last_number = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t fenced_bytes = 0;  // of them, those that the last fence was for
    std::uint64_t arrived_bytes = 0;
  };
  // A task that asks this one; used by the serving threads in turn.
  struct Asker {
    std::uint64_t last_number = 0;
    Reply last_reply;
    std::uint64_t arrived_bytes = 0;
    std::uint64_t refused = 0;
  };
  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] Result<Reply> ask(int task, const Request& request,
                                  std::span<const std::byte> data = {},
                                  std::span<std::byte> into = {});
  // The caller has the peer's turn.
  [[nodiscard]] Result<Reply> ask_in_turn(int task, const Request& request,
                                          std::span<const std::byte> data = {},
                                          std::span<std::byte> into = {},
                                          int repeats = most_repeats);
  [[nodiscard]] Result<bool> receive_answer(int task, Answer& answer, std::span<std::byte> into);
  [[nodiscard]] Status check_peer(int task);

  [[nodiscard]] Status find_endpoint(int task, const ServiceAddress& address);
  void serve(int socket);
  void serve_datagram(int socket, std::span<std::byte> datagram, const SocketAddress& from,
                      socklen_t from_len);
  [[nodiscard]] Reply execute(Asker& asker, const Request& request,
                              std::span<const std::byte> data);

  Served served_;
  SocketOptions options_;
  std::vector<Peer> peers_;
  std::vector<Asker> askers_;
  std::vector<UniqueFd> sockets_;
  std::atomic<bool> stopping_{false};
  std::mutex serving_turn_;
  std::vector<std::thread> serving_;
};

Status UdpWay::start(std::span<const SocketAddress> addresses) {
  SHIMA_TRY_ASSIGN(sockets_, open_endpoints(addresses, address_));
  for (const UniqueFd& socket : sockets_) {
    SHIMA_TRY_ASSIGN(auto thread,
                     start_quiet_thread([this, number = socket.get()] { serve(number); }));
    serving_.push_back(std::move(thread));
  }
  return {};
}

UdpWay::~UdpWay() {
  stopping_ = true;
  for (const UniqueFd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);  // ends the wait
  for (std::thread& thread : serving_) thread.join();
}

Status UdpWay::connect(std::span<const ServiceAddress> all) {
  for (int task = 0; task < static_cast<int>(all.size()); ++task) {
    if (task == options_.task) continue;
    SHIMA_TRY(find_endpoint(task, all[static_cast<std::size_t>(task)]));
  }
  return {};
}

// Not each address of another host can be reached from here.
Status UdpWay::find_endpoint(int task, const ServiceAddress& address) {
  Peer& it = peer(task);
  it.secret = address.asker;
  const std::lock_guard hold(it.turn);
  for (std::uint32_t i = 0; i < search_rounds * address.endpoint_count; ++i) {
    const SocketAddress& endpoint = address.endpoints[i % address.endpoint_count];
    it.socket = UniqueFd(::socket(endpoint.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!it.socket) return fail_errno(errno, "opening a UDP socket");
    if (::connect(it.socket.get(), as_sockaddr(endpoint), length_of(endpoint)) == 0 &&
        ask_in_turn(task, {}, {}, {}, search_repeats))
      return {};
  }
  return fail(Code::peer_lost,
              fmt::format("task {} answers by UDP at none of its {} network addresses; a firewall "
                          "may drop the datagrams",
                          task, address.endpoint_count));
}

void UdpWay::serve(int socket) {
  std::vector<std::byte> datagram(sizeof(Question) + most_data_bytes);
  while (!stopping_) {
    SocketAddress from{};
    socklen_t from_len = sizeof from;
    if (options_.spins && !wait_readable(socket, true, -1)) continue;
    const ssize_t len = ::recvfrom(socket, datagram.data(), datagram.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &from_len);
    if (len > 0)
      serve_datagram(socket, std::span(datagram).first(static_cast<std::size_t>(len)), from,
                     from_len);
  }
}

void UdpWay::serve_datagram(int socket, std::span<std::byte> datagram, const SocketAddress& from,
                            socklen_t from_len) {
  Question question;
  if (datagram.size() >= sizeof question) std::memcpy(&question, datagram.data(), sizeof question);
  if (datagram.size() < sizeof question || question.secret != address_.asker ||
      question.task >= askers_.size()) {
    static std::atomic<bool> told{false};
    if (!told.exchange(true))
      log(LogLevel::warn, "dsm: a datagram without the job's secret was dropped; no more are told");
    return;
  }
  const std::lock_guard hold(serving_turn_);
  Asker& asker = askers_[static_cast<std::size_t>(question.task)];
  const auto execute_it = [&] {
    return execute(asker, question.request, datagram.subspan(sizeof question));
  };
  if (question.number == 0) {
    std::ignore = execute_it();
    return;
  }
  if (question.number < asker.last_number) return;  // a late repetition
  if (question.number > asker.last_number || question.request.kind == Request::Kind::read)
    asker.last_reply = execute_it();
  asker.last_number = question.number;
  const bool has_data =
      question.request.kind == Request::Kind::read && asker.last_reply.refused == 0;
  const auto data = has_data ? served_.bytes_of(question.request) : std::nullopt;
  send_datagram(socket, Answer{question.number, asker.last_reply},
                data.value_or(std::span<std::byte>()), &from, from_len);
}

Reply UdpWay::execute(Asker& asker, const Request& request, std::span<const std::byte> data) {
  const bool writes =
      request.kind == Request::Kind::write || request.kind == Request::Kind::write_complete;
  if (request.kind == Request::Kind::fence)
    return {std::exchange(asker.refused, 0), asker.arrived_bytes};
  if (request.kind == Request::Kind::rmw) {
    const auto value = served_.rmw(request);
    return {value ? 0U : 1U, value.value_or(0)};
  }
  const auto bytes = served_.bytes_of(request);
  const bool fits =
      bytes && bytes->size() <= most_data_bytes && (!writes || bytes->size() == data.size());
  if (writes && fits) std::memcpy(bytes->data(), data.data(), data.size());
  if (request.kind == Request::Kind::write) {
    asker.arrived_bytes += data.size();
    if (!fits) ++asker.refused;
  }
  return {fits ? 0U : 1U, 0};
}

// Whether an answer has come; the caller has the peer's turn.
Result<bool> UdpWay::receive_answer(int task, Answer& answer, std::span<std::byte> into) {
  const int socket = peer(task).socket.get();
  if (!wait_readable(socket, options_.spins, repeat_ms)) return false;
  std::array<iovec, 2> pieces{iovec{&answer, sizeof answer}, iovec{into.data(), into.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t len = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (len < 0 && errno == ECONNREFUSED)
    return fail(Code::peer_lost, fmt::format("task {} has closed its UDP socket", task));
  const bool is_whole = len == static_cast<ssize_t>(sizeof answer + into.size()) ||
                        (len == static_cast<ssize_t>(sizeof answer) && answer.reply.refused != 0);
  return is_whole && answer.number == peer(task).last_number;
}

Status UdpWay::check_peer(int task) {
  if (!options_.is_lost || !options_.is_lost(task)) return {};
  return fail(Code::peer_lost, fmt::format("task {} has ended", task));
}

Result<Reply> UdpWay::ask(int task, const Request& request, std::span<const std::byte> data,
                          std::span<std::byte> into) {
  const std::lock_guard hold(peer(task).turn);
  return ask_in_turn(task, request, data, into);
}

Result<Reply> UdpWay::ask_in_turn(int task, const Request& request, std::span<const std::byte> data,
                                  std::span<std::byte> into, int repeats) {
  Peer& it = peer(task);
  const Question question{it.secret, static_cast<std::uint64_t>(options_.task), ++it.last_number,
                          request};
  for (int i = 0; i < repeats; ++i) {
    SHIMA_TRY(check_peer(task));
    send_datagram(it.socket.get(), question, data);
    for (bool has_come = true; has_come;) {
      Answer answer;
      SHIMA_TRY_ASSIGN(const bool is_it, receive_answer(task, answer, into));
      if (is_it) return answer.reply;
      has_come = wait_readable(it.socket.get(), false, 0);
    }
  }
  return fail(Code::timed_out, fmt::format("task {} has not answered {} datagrams in {} ms", task,
                                           repeats, repeats * repeat_ms));
}

Status UdpWay::read(int task, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const auto part = into.first(std::min(into.size(), most_data_bytes));
    SHIMA_TRY_ASSIGN(const Reply reply,
                     ask(task, {Request::Kind::read, 0, offset, part.size(), {}}, {}, part));
    if (reply.refused != 0) return refused_by(task);
    into = into.subspan(part.size());
    offset += part.size();
  }
  return {};
}

Status UdpWay::write(int task, std::uint64_t offset, std::span<const std::byte> data,
                     bool complete) {
  while (!data.empty()) {
    const auto part = data.first(std::min(data.size(), most_data_bytes));
    const Request::Kind kind = complete ? Request::Kind::write_complete : Request::Kind::write;
    const Request request{kind, 0, offset, part.size(), {}};
    if (complete) {
      SHIMA_TRY_ASSIGN(const Reply reply, ask(task, request, part));
      if (reply.refused != 0) return refused_by(task);
    } else {
      SHIMA_TRY(check_peer(task));
      Peer& it = peer(task);
      const std::lock_guard hold(it.turn);
      it.written_bytes += part.size();  // what the socket does not take is lost too
      send_datagram(it.socket.get(),
                    Question{it.secret, static_cast<std::uint64_t>(options_.task), 0, request},
                    part);
    }
    data = data.subspan(part.size());
    offset += part.size();
  }
  return {};
}

Result<std::uint64_t> UdpWay::rmw(int task, std::uint64_t offset, const Rmw& request) {
  SHIMA_TRY_ASSIGN(const Reply reply, ask(task, Request::of(offset, request)));
  if (reply.refused != 0) return refused_by(task);
  return reply.value;
}

Status UdpWay::fence() {
  Status status;
  for (int task = 0; task < static_cast<int>(peers_.size()); ++task) {
    Peer& it = peer(task);
    const std::lock_guard hold(it.turn);
    if (it.written_bytes == it.fenced_bytes) continue;
    const auto reply = ask_in_turn(task, {});
    if (!reply) {
      status = std::unexpected(reply.error());
      continue;
    }
    it.fenced_bytes = it.written_bytes;
    it.arrived_bytes = std::min(reply->value, it.written_bytes);
    if (reply->refused != 0 && status) status = refused_by(task);
  }
  return status;
}

std::uint64_t UdpWay::lost_bytes() {
  std::uint64_t lost = 0;
  for (Peer& it : peers_) {
    const std::lock_guard hold(it.turn);
    lost += it.fenced_bytes - it.arrived_bytes;
  }
  return lost;
}

}  // namespace

Result<std::unique_ptr<SocketWay>> serve_by_udp(const SegmentView& own, int tasks,
                                                SocketOptions options,
                                                std::span<const SocketAddress> addresses) {
  if (addresses.empty()) return fail(Code::io, "this host has no network address for UDP");
  auto way = std::make_unique<UdpWay>(own, tasks, std::move(options));
  SHIMA_TRY(way->start(addresses));
  return way;
}

}  // namespace shima::dsm
