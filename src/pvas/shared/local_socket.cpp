#include "pvas/shared/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "pvas/shared/wire.h"

namespace shima::pvas {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> address_of(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.name.sun_path)
    return fail(Code::bad_argument, "the name of a space is too long");
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<UniqueFd> make_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(errno, "creating a space's socket");
  return socket;
}

}  // namespace

std::string socket_name_for(const std::string& key) {
  return "shima-pvas-" + std::to_string(::geteuid()) + "-" + key;
}

std::string group_space_name(const std::string& group, int slice, int slices) {
  return socket_name_for("space-" + std::to_string(slice) + "-of-" + std::to_string(slices) + "-" +
                         group);
}

std::string group_memory_name(const std::string& group, int slice) {
  return socket_name_for("memory-" + std::to_string(slice) + "-" + group);
}

std::string group_lock_name(const std::string& group) { return socket_name_for("lock-" + group); }

Result<UniqueFd> bind_local(const std::string& name) {
  SHIMA_TRY_ASSIGN(const Address address, address_of(name));
  SHIMA_TRY_ASSIGN(UniqueFd socket, make_socket());
  if (::bind(socket.get(), address.get(), address.size) == 0) return socket;
  if (errno == EADDRINUSE) return fail(Code::file_exists, "this name of a space is taken", errno);
  return fail_errno(errno, "binding the name of a space's socket");
}

Status listen_local(const UniqueFd& socket) {
  if (::listen(socket.get(), SOMAXCONN) != 0) return fail_errno(errno, "listening for tasks");
  return {};
}

Result<UniqueFd> connect_local(const std::string& name) {
  SHIMA_TRY_ASSIGN(const Address address, address_of(name));
  SHIMA_TRY_ASSIGN(UniqueFd socket, make_socket());
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno == ECONNREFUSED) return fail(Code::no_such_file, "there is no such space", errno);
    return fail_errno(errno, "connecting to a space");
  }
  SHIMA_TRY(must_be_own_user(socket.get()));
  return socket;
}

}  // namespace shima::pvas
