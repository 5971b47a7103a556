// Copies bytes between the memory of one process and files at servers, by plain TCP: what moving
// them costs without Shima and without an MPI.
//
// tcp_copy serve ADDRESS PORT FILE CLIENTS SIZE_MIB: CLIENTS clients each own an equal part of
// FILE. A client first sends its number and whether it writes; the server then stores what it
// receives, or sends what the file has. It ends after CLIENTS clients. tcp_copy move OP NUMBER
// CLIENTS SIZE_MIB ADDRESS:PORT...: client NUMBER moves its part of each server's file, SIZE_MIB in
// all files together, one thread a server.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

struct Greeting {
  long client = 0;
  long writes = 0;
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

template <class Move>
void move_all(const char* what, std::size_t len, Move move) {
  for (std::size_t at = 0; at < len;) {
    const ssize_t moved = move(at, len - at);
    if (moved <= 0) die(what);
    at += static_cast<std::size_t>(moved);
  }
}
void send_bytes(int socket, const char* data, std::size_t len) {
  move_all("send", len, [&](std::size_t at, std::size_t left) {
    return ::send(socket, data + at, left, MSG_NOSIGNAL);
  });
}
void receive_bytes(int socket, char* data, std::size_t len) {
  move_all("recv", len,
           [&](std::size_t at, std::size_t left) { return ::recv(socket, data + at, left, 0); });
}

sockaddr_in address_of(const std::string& host, const std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) die("address");
  return address;
}

void serve_client(int socket, int file, std::size_t part_bytes) {
  Greeting greeting;
  receive_bytes(socket, reinterpret_cast<char*>(&greeting), sizeof greeting);
  std::vector<char> buffer(chunk_bytes);
  off_t offset = greeting.client * static_cast<off_t>(part_bytes);
  for (std::size_t left = part_bytes; left > 0;) {
    const std::size_t len = std::min(left, buffer.size());
    if (greeting.writes != 0) {
      receive_bytes(socket, buffer.data(), len);
      if (::pwrite(file, buffer.data(), len, offset) != static_cast<ssize_t>(len)) die("pwrite");
    } else {
      if (::pread(file, buffer.data(), len, offset) != static_cast<ssize_t>(len)) die("pread");
      send_bytes(socket, buffer.data(), len);
    }
    left -= len;
    offset += static_cast<off_t>(len);
  }
  send_bytes(socket, "e", 1);
  ::close(socket);
}

int serve(const std::vector<std::string>& words) {
  const std::size_t clients = std::stoul(words[3]);
  const std::size_t part_bytes = (std::stoul(words[4]) << 20) / clients;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(words[0], words[1]);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    die("bind");
  if (::listen(listener, 16) != 0) die("listen");
  const int file = ::open(words[2].c_str(), O_RDWR | O_CREAT, 0644);
  if (file < 0) die("open");
  std::puts("listening");
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients; ++i) {
    const int socket = ::accept(listener, nullptr, nullptr);
    if (socket < 0) die("accept");
    threads.emplace_back([=] { serve_client(socket, file, part_bytes); });
  }
  for (std::thread& thread : threads) thread.join();
  return ::close(file);
}

void move_part(const std::string& place, Greeting greeting, char* data, std::size_t len) {
  const std::size_t colon = place.find(':');
  const sockaddr_in address = address_of(place.substr(0, colon), place.substr(colon + 1));
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    die("connect");
  send_bytes(socket, reinterpret_cast<const char*>(&greeting), sizeof greeting);
  if (greeting.writes != 0) {
    send_bytes(socket, data, len);
  } else {
    receive_bytes(socket, data, len);
  }
  char end = 0;
  receive_bytes(socket, &end, 1);
  ::close(socket);
}

int move(const std::vector<std::string>& words) {
  const Greeting greeting{std::stol(words[1]), words[0] == "write" ? 1 : 0};
  const std::size_t clients = std::stoul(words[2]);
  const std::size_t servers = words.size() - 4;
  const std::size_t part_bytes = (std::stoul(words[3]) << 20) / clients / servers;
  std::vector<char> data(part_bytes * servers, 'x');
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers; ++i)
    threads.emplace_back(
        [&, i] { move_part(words[4 + i], greeting, data.data() + i * part_bytes, part_bytes); });
  for (std::thread& thread : threads) thread.join();
  std::puts("done");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (argc == 7 && std::string(argv[1]) == "serve") return serve(words);
  if (argc >= 7 && std::string(argv[1]) == "move") return move(words);
  std::fputs("usage: see the top of tcp_copy.cpp\n", stderr);
  return 2;
}
