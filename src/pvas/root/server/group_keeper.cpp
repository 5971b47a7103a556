#include "pvas/root/server/group_keeper.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "pvas/root/server/reserve.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {
namespace {

class Keeper {
 public:
  explicit Keeper(GroupKeeping keeping) : own_(std::move(keeping)) {}

  [[noreturn]] void run() {
    for (;;) {
      std::vector<pollfd> watched{{own_.listener.get(), POLLIN, 0},
                                  {own_.lazy ? own_.lazy->fd() : -1, POLLIN, 0}};
      for (const Peer& peer : own_.peers) watched.push_back({peer.socket.get(), POLLIN, 0});
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[1].revents != 0) own_.lazy->serve();
      for (std::size_t i = own_.peers.size(); i-- > 0;)
        if (watched[i + 2].revents != 0) hear(i);
      if (watched[0].revents != 0) accept_one();
    }
  }

 private:
  UniqueFd accept_socket() const {
    return UniqueFd(::accept4(own_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  void accept_one() {
    spare_.take();
    UniqueFd socket = accept_socket();
    if (!socket && (errno == EMFILE || errno == ENFILE))  // refuses the visitor by closing
      return spare_.lend([this] { static_cast<void>(accept_socket()); });
    if (socket && must_be_own_user(socket.get())) own_.peers.push_back({std::move(socket)});
  }

  void hear(std::size_t at) {
    Peer& peer = own_.peers[at];
    const auto received = receive_message(peer.socket.get());
    if (received && obey(peer, received->message)) return;
    // A root that has not joined has left nothing behind.
    if (peer.incarnation != 0)
      forget_member(*own_.space_state->commons, peer.slice, peer.incarnation);
    own_.peers.erase(own_.peers.begin() + static_cast<std::ptrdiff_t>(at));
  }

  [[nodiscard]] Status obey(Peer& peer, const Message& message) const {
    if (message.word == Word::joined && message.value >= 0 && message.value < max_slices) {
      peer.slice = message.value;
      peer.incarnation = static_cast<std::uint32_t>(message.other);
      return {};
    }
    if (message.word != Word::memory) return fail(Code::bad_argument, "an unknown message");
    Message answer;
    answer.word = Word::memory;
    answer.value = own_.space_state->slice;
    answer.other = static_cast<std::int32_t>(own_.space_state->incarnation);
    return send_message(peer.socket.get(), answer, std::array{own_.file.get()});
  }

  GroupKeeping own_;
  SpareNumber spare_;
};

}  // namespace

void keep_group(GroupKeeping keeping) {
  auto* const keeper = new Keeper(std::move(keeping));  // lives as long as the process
  std::thread([keeper] { keeper->run(); }).detach();
}

}  // namespace shima::pvas
