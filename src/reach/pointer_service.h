// Shared file pointers for members that share no memory.
//
// One member keeps the words of all files of a communicator, and a thread of it answers the others
// over TCP, so that nobody waits for a member that computes. The thread sleeps while nobody asks; a
// member connects when it first asks. Both ends show a secret that only the members know, since
// the address may reach somebody else, or somebody else us.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace shima {

// Where the keeper can be reached; as bytes, the members send it to each other. No endpoint: not at
// all.
struct PointerAddress {
  using Secret = std::array<std::byte, 16>;
  static constexpr std::size_t most_endpoints = 8;

  Secret asker{};
  Secret keeper{};
  std::uint32_t endpoint_count = 0;
  std::array<sockaddr_in6, most_endpoints> endpoints{};  // or a sockaddr_in in its place
};

struct PointerRequest {
  enum Operation : std::uint32_t { advance, set };

  std::uint64_t file = 0;
  std::uint32_t turn = 0;  // which of the file's two words
  Operation operation = advance;
  std::int64_t value = 0;
};

// Thread-safe.
class PointerService {
 public:
  [[nodiscard]] static Result<std::shared_ptr<PointerService>> start();
  PointerService(const PointerService&) = delete;
  PointerService& operator=(const PointerService&) = delete;
  ~PointerService();

  [[nodiscard]] const PointerAddress& address() const { return address_; }
  // Carries out a request and returns the word as it was before. Words start at 0.
  std::int64_t serve(const PointerRequest& request);
  void forget(std::uint64_t file);

 private:
  struct Visitor;
  PointerService() = default;
  [[nodiscard]] Status listen();
  void run();
  [[nodiscard]] Result<bool> look_round(std::vector<Visitor>& visitors);
  void admit(std::vector<Visitor>& visitors) const;
  [[nodiscard]] bool attend(Visitor& visitor);

  PointerAddress address_;
  int listener_ = -1;
  int stop_ = -1;
  std::mutex lock_;
  std::map<std::uint64_t, std::array<std::int64_t, 2>> words_;
  std::thread thread_;
};

// Thread-safe.
class PointerClient {
 public:
  explicit PointerClient(const PointerAddress& address) : address_(address) {}
  PointerClient(const PointerClient&) = delete;
  PointerClient& operator=(const PointerClient&) = delete;
  ~PointerClient();

  // Has the keeper carry out a request. Blocks.
  [[nodiscard]] Result<std::int64_t> ask(const PointerRequest& request);

 private:
  [[nodiscard]] Status connect();

  PointerAddress address_;
  std::mutex lock_;
  int socket_ = -1;
};

}  // namespace shima
