#include "group/pointer/pointer_protocol.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace shima {
namespace {

// Moves all bytes by move(offset); a signal of the program does not end it.
template <class Move>
bool move_all(std::size_t len_bytes, Move move) {
  for (std::size_t done = 0; done < len_bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = ECONNRESET;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

bool send_all(int socket, const void* data, std::size_t len_bytes) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::send(socket, static_cast<const std::byte*>(data) + done, len_bytes - done,
                  MSG_NOSIGNAL);
  });
}

bool receive_all(int socket, void* data, std::size_t len_bytes) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::recv(socket, static_cast<std::byte*>(data) + done, len_bytes - done, 0);
  });
}

void answer_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace shima
