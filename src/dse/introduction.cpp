#include "dse/introduction.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <span>

#include "dse/link.h"
#include "dse/plan/words.h"
#include "lapi/way/meeting.h"

namespace shima::dse {
namespace {

constexpr std::string_view first_words = "shima-dse 1 ";
constexpr std::size_t most_line_bytes = 4096;
constexpr auto connect_timeout = std::chrono::seconds(3);

Result<UniqueFd> connect_at(const SocketAddress& endpoint, const Key& key) {
  UniqueFd socket(::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(errno, "making a socket");
  give_up_after(socket.get(), connect_timeout);
  if (!connect_all(socket.get(), as_sockaddr(endpoint), length_of(endpoint), connect_timeout))
    return fail(Code::io, "connecting", errno);
  SHIMA_TRY(prove_to_server(socket.get(), key, spoken));
  return socket;
}

}  // namespace

std::string describe(const Introduction& introduction) {
  return fmt::format("{}{} {}\n", first_words, introduction.number,
                     lapi::describe(introduction.place));
}

Result<Introduction> parse_introduction(std::string_view line) {
  Introduction introduction;
  if (line.starts_with(first_words)) {
    line.remove_prefix(first_words.size());
    const auto space = std::min(line.find(' '), line.size());
    const auto number = parse_number(line.substr(0, space));
    const auto place =
        lapi::parse_meeting(std::string(line.substr(std::min(space + 1, line.size()))).c_str());
    if (number && *number >= -1 && place) return Introduction{*number, *place};
  }
  return fail(Code::bad_argument,
              "the standard input is not what `shima dse run` of this version of Shima writes; it "
              "alone starts daemons");
}

// Not more than the line: the rest is not for this process.
Result<Introduction> read_introduction(int fd) {
  std::string line;
  if (const char* given = std::getenv(introduction_variable)) {
    line = given;
    ::unsetenv(introduction_variable);
    return parse_introduction(line.substr(0, line.find('\n')));
  }
  for (char c = 0; line.size() < most_line_bytes;) {
    const ssize_t got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') break;
    line += c;
  }
  return parse_introduction(line);
}

Status make_key(ServiceAddress& place) {
  for (ServiceAddress::Secret* half : {&place.asker, &place.keeper})
    if (::getrandom(half->data(), half->size(), 0) != std::ssize(*half))
      return fail_errno(errno, "making a key");
  return {};
}

Key key_of(const ServiceAddress& place) {
  Key key(place.asker.begin(), place.asker.end());
  key.insert(key.end(), place.keeper.begin(), place.keeper.end());
  return key;
}

// Another machine may have one of the addresses; it does not have the key.
Result<UniqueFd> connect_to_run(const Introduction& introduction) {
  const ServiceAddress& place = introduction.place;
  std::string tried;
  for (const SocketAddress& endpoint : std::span(place.endpoints).first(place.endpoint_count)) {
    auto socket = connect_at(endpoint, key_of(place));
    if (socket) return socket;
    tried += fmt::format("{}{} port {} ({})", tried.empty() ? "" : ", ", name_of(endpoint),
                         ntohs(endpoint.sin6_port), describe(socket.error()));
  }
  return fail(Code::io, "no connection to `shima dse run`: " + tried);
}

}  // namespace shima::dse
