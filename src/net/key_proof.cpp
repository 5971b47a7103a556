#include "net/key_proof.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "base/unique_fd.h"
#include "net/hmac.h"
#include "net/wire.h"

namespace shima {
namespace {

constexpr std::size_t shortest_key = 16;
constexpr std::size_t longest_key = 4096;

struct ServerHello {
  Spoken spoken;
  std::uint32_t reserved = 0;
  Digest number{};
};
struct ClientHello {
  Spoken spoken;
  std::uint32_t reserved = 0;
  Digest number{};
  Digest proof{};
};
static_assert(sizeof(ServerHello) == 48 && sizeof(ClientHello) == 80);

enum class Role : char { client = 'c', server = 's' };

Digest proof_of(Role role, const Key& key, const ServerHello& server, const Digest& client) {
  return hmac_sha256(key, {std::as_bytes(std::span(&role, 1)),
                           std::as_bytes(std::span(&server.spoken, 1)), server.number, client});
}

Result<Digest> random_number() {
  Digest number{};
  if (::getrandom(number.data(), number.size(), 0) != std::ssize(number))
    return fail_errno(errno, "getting a random number");
  return number;
}

std::unexpected<Error> cut() {
  const int why = errno == EAGAIN ? ETIMEDOUT : errno;
  return fail(Code::io, "proving the key", why);
}

}  // namespace

Result<Key> read_key(const std::string& path, std::span<const uid_t> owners) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return fail_errno(errno, "reading the key " + path);
  if ((facts.st_mode & 0077U) != 0)
    return fail(Code::access_denied,
                fmt::format("other users can read the key {}; correct it by chmod 600 {}, and use "
                            "another key if they may have read it",
                            path, path));
  if (!owners.empty() && std::ranges::find(owners, facts.st_uid) == owners.end())
    return fail(Code::access_denied,
                fmt::format("the key {} belongs to another user ({}), who can replace it; correct "
                            "it by chown",
                            path, facts.st_uid));
  Key key(longest_key);
  const ssize_t len = ::read(fd.get(), key.data(), key.size());
  if (len < 0) return fail_errno(errno, "reading the key " + path);
  key.resize(static_cast<std::size_t>(len));
  while (!key.empty() && std::isspace(std::to_integer<unsigned char>(key.back())) != 0)
    key.pop_back();
  if (key.size() < shortest_key)
    return fail(Code::bad_argument,
                fmt::format("the key {} is shorter than {} bytes; make one by head -c 32 "
                            "/dev/urandom | base64",
                            path, shortest_key));
  return key;
}

Status prove_to_server(int socket, const Key& key, const Spoken& spoken) {
  ServerHello server;
  if (!receive_all(socket, &server, sizeof server)) return cut();
  if (server.spoken.service != spoken.service)
    return fail(Code::io, "another kind of server answers there", EPROTO);
  if (server.spoken.version != spoken.version)
    return fail(Code::io,
                fmt::format("the server is of another version of Shima ({}, not {})",
                            server.spoken.version, spoken.version),
                EPROTO);
  ClientHello client{spoken, 0, {}, {}};
  SHIMA_TRY_ASSIGN(client.number, random_number());
  client.proof = proof_of(Role::client, key, server, client.number);
  Digest proof{};
  if (!send_all(socket, &client, sizeof client)) return cut();
  if (!receive_all(socket, proof.data(), proof.size())) {
    if (errno != ECONNRESET) return cut();
    return fail(Code::access_denied, "the server has refused the key", EACCES);
  }
  if (is_equal_secretly(proof, proof_of(Role::server, key, server, client.number))) return {};
  return fail(Code::access_denied, "the server does not have the key", EACCES);
}

Result<std::size_t> prove_to_client(int socket, std::span<const Key> keys, const Spoken& spoken) {
  ServerHello server{spoken, 0, {}};
  SHIMA_TRY_ASSIGN(server.number, random_number());
  ClientHello client;
  if (!send_all(socket, &server, sizeof server)) return cut();
  if (!receive_all(socket, &client, sizeof client)) return cut();
  if (client.spoken.service != spoken.service || client.spoken.version != spoken.version)
    return fail(Code::io, "it speaks something else", EPROTO);
  std::size_t which = keys.size();
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (is_equal_secretly(client.proof, proof_of(Role::client, keys[i], server, client.number)))
      which = i;
  if (which == keys.size())
    return fail(Code::access_denied,
                keys.size() == 1 ? "it has another key" : "it has none of the keys", EACCES);
  const Digest proof = proof_of(Role::server, keys[which], server, client.number);
  if (!send_all(socket, proof.data(), proof.size())) return cut();
  return which;
}

bool hears_server(int socket) {
  std::byte first{};
  ssize_t heard = -1;
  do {
    heard = ::recv(socket, &first, 1, MSG_PEEK);
  } while (heard < 0 && errno == EINTR);
  return heard >= 0 || errno == ECONNRESET;
}

}  // namespace shima
