#include "net/own_socket.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <vector>

namespace shima {
namespace {

struct OwnSockets {
  std::mutex mutex;  // held during fork()
  std::vector<int> all;
};

void before_fork();
void after_fork();
void in_child();

// Never destroyed: threads may fork until the process ends.
OwnSockets& sockets() {
  static auto* const made = [] {
    auto* const fresh = new OwnSockets;
    ::pthread_atfork(before_fork, after_fork, in_child);
    return fresh;
  }();
  return *made;
}

void before_fork() { sockets().mutex.lock(); }
void after_fork() { sockets().mutex.unlock(); }

void in_child() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int socket : sockets().all)
    if (null < 0 || ::dup3(null, socket, O_CLOEXEC) < 0) ::close(socket);
  if (null >= 0) ::close(null);
  sockets().all.clear();
  sockets().mutex.unlock();
}

}  // namespace

void keep_from_children(int socket) {
  OwnSockets& known = sockets();
  const std::lock_guard hold(known.mutex);
  known.all.push_back(socket);
}

void keep_no_longer(int socket) {
  OwnSockets& known = sockets();
  const std::lock_guard hold(known.mutex);
  std::erase(known.all, socket);
}

}  // namespace shima
