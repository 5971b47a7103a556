// The workers of group_test.cpp.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "pvas/task/membership.h"
#include "pvas/worker.h"
#include "shima/pvas.h"

namespace group_workers {

constexpr int patience_ms = 20000;
constexpr int nodes = 5000;
constexpr int node_bytes_kinds = 7;  // nodes are of 32 bytes to 2 KiB
constexpr std::size_t block_bytes = std::size_t{2} << 20;
constexpr std::size_t large_bytes = 12 * block_bytes;

struct Node {
  int value;
  Node* next;
};

template <class T>
T* shared(std::size_t bytes) {
  void* address = nullptr;
  return pvas_share_alloc(bytes, &address) == 0 ? static_cast<T*>(address) : nullptr;
}

inline unsigned char byte_at(std::size_t offset) {
  return static_cast<unsigned char>(offset * 7 + offset / 4096);
}

inline int stay() {
  for (;;) pause();
}

// A list whose nodes have different sizes and are in many blocks, and a large block.
inline int build() {
  Node* head = nullptr;
  for (int i = 0; i < nodes; ++i) {
    auto* const node = shared<Node>(std::size_t{32} << (i % node_bytes_kinds));
    MUST(node != nullptr);
    *node = {i, head};
    head = node;
  }
  auto* const large = shared<unsigned char>(large_bytes);
  MUST(large != nullptr);
  for (std::size_t i = 0; i < large_bytes; ++i) large[i] = byte_at(i);
  MUST(pvas_export("large", large, large_bytes) == 0);
  MUST(pvas_export("list", head, sizeof *head) == 0);
  return 0;
}

inline int build_and_stay() {
  const int built = build();
  return built != 0 ? built : stay();
}

inline int walk() {
  void* address = nullptr;
  std::size_t size = 0;
  int owner = 99;
  MUST(pvas_import("list", patience_ms, &address, &size, &owner) == 0);
  MUST(size == sizeof(Node) && owner == -1 && pvas_owner(address) == PVAS_ERR_LOST);
  int count = 0;
  for (auto* node = static_cast<Node*>(address); node != nullptr; node = node->next) {
    MUST(node->value == nodes - 1 - count++);
    node->value *= 2;
  }
  MUST(count == nodes);
  return 0;
}

// The first node only.
inline int see_list() {
  void* address = nullptr;
  MUST(pvas_import("list", patience_ms, &address, nullptr, nullptr) == 0);
  MUST(static_cast<Node*>(address)->value == nodes - 1);
  return 0;
}

// The other space's list, after it was walked.
inline int see_walked() {
  void* address = nullptr;
  MUST(pvas_import("list", patience_ms, &address, nullptr, nullptr) == 0);
  MUST(static_cast<Node*>(address)->value == 2 * (nodes - 1));
  return 0;
}

// System calls on blocks that no task of this space has touched: each is the first touch of its
// block.
inline int system_calls() {
  void* address = nullptr;
  MUST(pvas_import("large", patience_ms, &address, nullptr, nullptr) == 0);
  auto* const large = static_cast<unsigned char*>(address);
  const int file = memfd_create("copy", 0);
  std::vector<unsigned char> copy(large_bytes);
  const std::size_t half = large_bytes / 2;
  MUST(write(file, large, half) == static_cast<ssize_t>(half));
  MUST(pread(file, copy.data(), half, 0) == static_cast<ssize_t>(half));
  const iovec here{copy.data() + half, half};
  const iovec there{large + half, half};
  MUST(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(half));
  for (std::size_t i = 0; i < large_bytes; ++i) MUST(copy[i] == byte_at(i));
  // The same in the other direction.
  auto* const fresh = shared<unsigned char>(large_bytes);
  MUST(fresh != nullptr);
  MUST(pread(file, fresh, half, 0) == static_cast<ssize_t>(half));
  MUST(std::memcmp(fresh, copy.data(), half) == 0);
  return 0;
}

inline int is_lazy() { return pvas_sharing() == PVAS_SHARING_LAZY ? 0 : 1; }
inline int is_eager() { return pvas_sharing() == PVAS_SHARING_EAGER ? 0 : 1; }
inline int is_alone() {
  void* address = nullptr;
  MUST(pvas_sharing() == PVAS_SHARING_NONE);
  MUST(pvas_share_alloc(8, &address) == PVAS_ERR_NOT_A_TASK);
  MUST(pvas_spaces(nullptr, 0) == PVAS_ERR_NOT_A_TASK);
  return 0;
}

inline int refused_calls() {
  void* address = nullptr;
  int slices[8];
  MUST(pvas_spaces(slices, 8) == 2 && slices[0] == 0 && slices[1] == 1);
  MUST(pvas_spaces(nullptr, 1) == PVAS_ERR_ARGUMENT);
  MUST(pvas_share_alloc(0, &address) == PVAS_ERR_ARGUMENT);
  MUST(pvas_share_alloc(8, nullptr) == PVAS_ERR_ARGUMENT);
  MUST(pvas_share_alloc(std::size_t{1} << 50, &address) == PVAS_ERR_NO_MEMORY);
  MUST(address == nullptr);
  MUST(pvas_share_free(nullptr) == 0);
  MUST(pvas_share_free(slices) == PVAS_ERR_ARGUMENT);
  MUST(pvas_share_alloc(100, &address) == 0);
  MUST(pvas_share_free(static_cast<char*>(address) + 1) == PVAS_ERR_ARGUMENT);
  MUST(pvas_share_free(address) == 0);
  MUST(pvas_share_free(address) == PVAS_ERR_ARGUMENT);
  // A name of private memory belongs to this space, even if the other space uses the same name.
  int own = 0;
  MUST(pvas_export("own", &own, sizeof own) == 0);
  MUST(pvas_import("own", 0, &address, nullptr, nullptr) == 0 && address == &own);
  return 0;
}

// Memory that is freed by a space other than the one that allocated it.
inline int free_list() {
  void* address = nullptr;
  MUST(pvas_import("list", patience_ms, &address, nullptr, nullptr) == 0);
  for (auto* node = static_cast<Node*>(address); node != nullptr;) {
    Node* const next = node->next;
    MUST(pvas_share_free(node) == 0);
    node = next;
  }
  return 0;
}

// Allocates and frees, and checks the results, until it is killed.
inline int trade(int rounds) {
  std::mt19937 random(static_cast<unsigned>(getpid()));
  struct Piece {
    unsigned char* bytes;
    std::size_t size;
  };
  std::vector<Piece> held;
  const auto own = static_cast<unsigned char>(getpid());
  for (int i = 0; rounds == 0 || i < rounds; ++i) {
    if (held.size() < 30 && random() % 2 == 0) {
      const std::size_t size = random() % 20 == 0 ? 200'000 : 1 + random() % 3000;
      held.push_back({shared<unsigned char>(size), size});
      MUST(held.back().bytes != nullptr);
      std::memset(held.back().bytes, own, size);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const Piece piece = held.back();
      held.pop_back();
      for (std::size_t b = 0; b < piece.size; ++b) MUST(piece.bytes[b] == own);
      MUST(pvas_share_free(piece.bytes) == 0);
    }
  }
  for (const Piece& piece : held) MUST(pvas_share_free(piece.bytes) == 0);
  return 0;
}
inline int trade_much() { return trade(30'000); }
inline int trade_for_ever() { return trade(0); }

// Names of the whole group, which keep working after the holder of their lock has died.
inline int share_names() {
  auto* const memory = shared<int>(sizeof(int));
  void* address = nullptr;
  MUST(memory != nullptr);
  MUST(pvas_export("for all", memory, sizeof *memory) == 0);
  MUST(pvas_export("for all", memory, sizeof *memory) == PVAS_ERR_EXISTS);
  int owner = -2;
  MUST(pvas_import("for all", 0, &address, nullptr, &owner) == 0 && address == memory);
  MUST(owner == pvas_self());
  MUST(pvas_withdraw("for all") == 0);
  MUST(pvas_import("for all", 0, &address, nullptr, nullptr) == PVAS_ERR_TIMEOUT);
  return 0;
}

inline int lock_names() {
  const auto self = shima::pvas::Membership::own();
  const auto group = self->commons();
  MUST(group);
  (*group)->names.lock = shima::pvas::shared_number(self->space_state().incarnation, self->task());
  return -1;
}
inline int die_with_lock() {
  MUST(lock_names() == -1);
  kill(getpid(), SIGKILL);
  return 1;
}
inline int stay_with_lock() {
  MUST(lock_names() == -1);
  return stay();
}

// The other space has ended, and its names are removed; what it allocated still exists.
inline int outlive() {
  void* list = nullptr;
  void* address = nullptr;
  MUST(pvas_import("list", patience_ms, &list, nullptr, nullptr) == 0);
  auto* const mine = shared<int>(sizeof(int));
  MUST(mine != nullptr);
  MUST(pvas_export("watching", mine, sizeof *mine) == 0);
  MUST(eventually([] { return pvas_spaces(nullptr, 0) == 1; }));
  MUST(eventually(
      [&] { return pvas_import("list", 0, &address, nullptr, nullptr) == PVAS_ERR_TIMEOUT; }));
  int count = 0;
  for (auto* node = static_cast<Node*>(list); node != nullptr; node = node->next) ++count;
  MUST(count == nodes);
  MUST(trade(1000) == 0);
  return share_names();
}
inline int see_watching() {
  void* address = nullptr;
  MUST(pvas_import("watching", patience_ms, &address, nullptr, nullptr) == 0);
  return 0;
}

// A new group does not see the contents of the previous group's memory.
inline int take_first() {
  auto* const memory = shared<unsigned char>(large_bytes);
  MUST(memory != nullptr);
  MUST(memory[0] == 0 && memory[large_bytes / 2] == 0);
  MUST(reinterpret_cast<std::uint64_t>(memory) == shima::pvas::commons_data_begin);
  std::memset(memory, 1, large_bytes);
  return 0;
}

// Writes one byte in each of many blocks, for a task of the other space that reads them while its
// root dies.
constexpr std::size_t field_blocks = 4096;
enum class FieldByte : std::size_t { sown, begun, wrong };

inline volatile char& in_field(void* field, std::size_t block, FieldByte which) {
  return static_cast<volatile char*>(field)[block * block_bytes + static_cast<std::size_t>(which)];
}
inline int sow() {
  auto* const field = shared<char>(field_blocks * block_bytes);
  MUST(field != nullptr);
  for (std::size_t i = 0; i < field_blocks; ++i) in_field(field, i, FieldByte::sown) = 1;
  MUST(pvas_export("field", field, field_blocks * block_bytes) == 0);
  return stay();
}
inline int reap() {
  void* field = nullptr;
  MUST(pvas_import("field", patience_ms, &field, nullptr, nullptr) == 0);
  in_field(field, 0, FieldByte::begun) = 1;
  for (std::size_t i = 0; i < field_blocks; ++i)
    if (in_field(field, i, FieldByte::sown) != 1) in_field(field, 0, FieldByte::wrong) = 1;
  return stay();
}
inline int see_reaping() {
  void* field = nullptr;
  MUST(pvas_import("field", patience_ms, &field, nullptr, nullptr) == 0);
  MUST(eventually([&] { return in_field(field, 0, FieldByte::begun) == 1; }));
  in_field(field, 0, FieldByte::begun) = 0;
  return 0;
}
inline int see_no_wrong() {
  void* field = nullptr;
  MUST(pvas_import("field", patience_ms, &field, nullptr, nullptr) == 0);
  MUST(in_field(field, 0, FieldByte::wrong) == 0);
  return 0;
}

inline int on_core(int core) {
  cpu_set_t cores;
  MUST(sched_getaffinity(0, sizeof cores, &cores) == 0);
  MUST(CPU_COUNT(&cores) == 1 && CPU_ISSET(core, &cores));
  return 0;
}
inline int on_core_0() { return on_core(0); }
inline int on_core_1() { return on_core(1); }

inline int show_private() {
  static int own = 5;
  auto* const where = shared<int*>(sizeof(int*));
  MUST(where != nullptr);
  *where = &own;
  MUST(pvas_export("private", where, sizeof *where) == 0);
  return stay();
}
inline int touch_private() {
  void* address = nullptr;
  MUST(pvas_import("private", patience_ms, &address, nullptr, nullptr) == 0);
  int* const foreign = *static_cast<int**>(address);
  MUST(mmap(foreign, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
       MAP_FAILED);
  return *static_cast<volatile int*>(foreign) == 5 ? 0 : 1;
}

// A forked child has the blocks that were touched before, and never reads wrong bytes in the
// others.
inline int fork_child() {
  void* address = nullptr;
  MUST(pvas_import("large", patience_ms, &address, nullptr, nullptr) == 0);
  auto* const large = static_cast<volatile unsigned char*>(address);
  const std::size_t far = 5 * block_bytes;
  MUST(large[far] == byte_at(far));
  const pid_t child = fork();
  if (child == 0) {
    if (large[far] != byte_at(far)) _exit(1);
    signal(SIGSEGV, [](int) { _exit(0); });
    _exit(large[8 * block_bytes] == byte_at(8 * block_bytes) ? 0 : 2);
  }
  int status = -1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}

inline const std::map<std::string, int (*)()> works{
    {"build", build},
    {"build_and_stay", build_and_stay},
    {"walk", walk},
    {"see_list", see_list},
    {"see_walked", see_walked},
    {"system_calls", system_calls},
    {"is_lazy", is_lazy},
    {"is_eager", is_eager},
    {"is_alone", is_alone},
    {"refused_calls", refused_calls},
    {"free_list", free_list},
    {"trade_much", trade_much},
    {"trade_for_ever", trade_for_ever},
    {"share_names", share_names},
    {"die_with_lock", die_with_lock},
    {"stay_with_lock", stay_with_lock},
    {"outlive", outlive},
    {"see_watching", see_watching},
    {"take_first", take_first},
    {"on_core_0", on_core_0},
    {"on_core_1", on_core_1},
    {"show_private", show_private},
    {"touch_private", touch_private},
    {"fork_child", fork_child},
    {"stay", stay},
    {"sow", sow},
    {"reap", reap},
    {"see_reaping", see_reaping},
    {"see_no_wrong", see_no_wrong},
};

}  // namespace group_workers
