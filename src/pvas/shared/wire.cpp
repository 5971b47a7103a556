#include "pvas/shared/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace shima::pvas {
namespace {

class Packer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void put(const std::vector<std::string>& texts) {
    put(std::uint64_t{texts.size()});
    for (const std::string& text : texts) put(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first missing field every value is zero, and ok() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    if (sizeof value > rest_.size()) return lose();
    rest_.copy(reinterpret_cast<char*>(&value), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void get(std::string& text) {
    std::uint64_t size = 0;
    get(size);
    if (size > rest_.size()) return lose();
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  void get(std::vector<std::string>& texts) {
    std::uint64_t count = 0;
    get(count);
    if (count > rest_.size()) return lose();
    texts.resize(count);
    for (std::string& text : texts) get(text);
  }
  [[nodiscard]] bool ok() const { return ok_ && rest_.empty(); }

 private:
  void lose() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

// The fields of an order, listed once for both directions.
template <class Order, class Visit>
void each_field(Order& order, Visit visit) {
  visit(order.file);
  visit(order.shown);
  visit(order.name);
  visit(order.arguments);
  visit(order.environment);
  visit(order.umask);
  visit(order.blocked);
  visit(order.ignored);
  visit(order.niceness);
  visit(order.process_group);
  visit(order.limits);
}

}  // namespace

std::string encode(const SpawnOrder& order) {
  Packer packer;
  each_field(order, [&](const auto& field) { packer.put(field); });
  packer.put(std::string(order.cpus.begin(), order.cpus.end()));
  return packer.take();
}

Result<SpawnOrder> decode_order(std::string_view bytes) {
  Unpacker unpacker(bytes);
  SpawnOrder order;
  each_field(order, [&](auto& field) { unpacker.get(field); });
  std::string cpus;
  unpacker.get(cpus);
  order.cpus.assign(cpus.begin(), cpus.end());
  if (!unpacker.ok()) return fail(Code::bad_argument, "a damaged spawn order");
  return order;
}

Status send_message(int socket, const Message& message, std::span<const int> files) {
  iovec part{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(files_at_once * sizeof(int))> control{};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (!files.empty()) {
    head.msg_control = control.data();
    head.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &head, MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET)
      return fail(Code::peer_lost, "the peer of a space's connection has exited", errno);
    return fail_errno(errno, "sending to a space");
  }
}

Result<Received> receive_message(int socket) {
  Received received;
  iovec part{&received.message, sizeof received.message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(files_at_once * sizeof(int))> control{};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = control.data();
  head.msg_controllen = control.size();
  ssize_t got = 0;
  bool was_reset = false;  // reported once, before data that the peer had sent
  do {
    got = ::recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))));
  for (cmsghdr* rights = got > 0 ? CMSG_FIRSTHDR(&head) : nullptr; rights != nullptr;
       rights = CMSG_NXTHDR(&head, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(rights), fds.size() * sizeof(int));
    for (const int fd : fds) received.files.emplace_back(fd);
  }
  if (got < 0 && errno != ECONNRESET) return fail_errno(errno, "receiving from a space");
  if (got <= 0) return fail(Code::peer_lost, "the peer of a space's connection has exited");
  if (got != sizeof received.message || received.message.magic != wire_magic)
    return fail(Code::not_same, "the space runs another version of Shima");
  if ((head.msg_flags & MSG_CTRUNC) != 0)
    return fail(
        Code::no_memory,
        "no file descriptor is left for files that were sent: raise the limit of open files (a "
        "space's root has the hard limit of the process that creates the space)",
        EMFILE);
  return received;
}

Status must_be_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail_errno(errno, "reading the user of the peer of a space's connection");
  if (peer.uid == ::geteuid()) return {};
  return fail(
      Code::access_denied,
      "the peer of a space's connection is a process of another user, " + std::to_string(peer.uid));
}

}  // namespace shima::pvas
