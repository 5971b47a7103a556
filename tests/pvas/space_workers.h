// The workers of space_test.cpp: what tasks of a space do. Each returns 0, or the number of the
// line that failed (worker.h). `works` has them by name.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "pvas/shared/space_state.h"
#include "pvas/task/membership.h"
#include "pvas/worker.h"
#include "shima/pvas.h"

namespace space_workers {

using namespace std::chrono_literals;

struct Link {
  int value;
  Link* next;
};

inline std::atomic<int> go_on{0};  // one in each task
inline int global = 0;

inline int show_list() {
  static Link links[] = {{1, &links[1]}, {20, &links[2]}, {300, nullptr}};
  MUST(pvas_export("go on", &go_on, sizeof go_on) == 0);
  MUST(pvas_export("list", links, sizeof links) == 0);
  while (go_on == 0) std::this_thread::sleep_for(1ms);
  return 0;
}

inline int walk_list() {
  void* address = nullptr;
  std::size_t size = 0;
  int owner = -1;
  MUST(pvas_import("list", guard_ms, &address, &size, &owner) == 0);
  MUST(owner != pvas_self() && pvas_owner(address) == owner);
  MUST(size == 3 * sizeof(Link));
  int sum = 0;
  for (const Link* link = static_cast<Link*>(address); link != nullptr; link = link->next)
    sum += link->value;
  MUST(sum == 321);
  MUST(pvas_import("go on", guard_ms, &address, nullptr, nullptr) == 0);
  static_cast<std::atomic<int>*>(address)->store(1);
  return 0;
}

// Globals, heap, stacks, threads and thread-locals belong to the task, and are in its partition.
inline int own_memory() {
  const int self = pvas_self();
  MUST(self >= 0);
  MUST(global++ == 0);
  static thread_local int local = 5;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      local += t;
      if (pvas_owner(&local) != self || local != 5 + t) ++wrong;
      for (int round = 0; round < 80; ++round) {
        const std::size_t size = 100U << (round % 16);
        std::vector<char> block(size, static_cast<char>(self));
        if (pvas_owner(block.data()) != self) ++wrong;
        block.resize(size * 3, static_cast<char>(self));
        if (pvas_owner(block.data() + size * 3 - 1) != self) ++wrong;
        const auto same = std::count(block.begin(), block.end(), static_cast<char>(self));
        if (same != static_cast<std::ptrdiff_t>(block.size())) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  MUST(wrong == 0);
  int here = 0;
  MUST(pvas_owner(&here) == self && pvas_owner(&global) == self);
  MUST(pvas_owner(reinterpret_cast<void*>(&std::exit)) == self);
  const int file = open("/proc/self/exe", O_RDONLY);
  void* const mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  MUST(pvas_owner(mapped) == self);
  return 0;
}

// The heap at the program break belongs to the task: it grows, shrinks, is zero where it has grown,
// and is followed by readable pages (MPICH copies 4 KiB from shorter blocks).
inline int own_heap() {
  constexpr intptr_t len_bytes = 5 << 20;
  auto* const begin = static_cast<char*>(sbrk(len_bytes));
  MUST(begin != reinterpret_cast<char*>(-1) && pvas_owner(begin) == pvas_self());
  MUST(sbrk(0) == begin + len_bytes);
  std::memset(begin, 7, len_bytes);
  MUST(sbrk(1 - len_bytes) == begin + len_bytes && sbrk(0) == begin + 1);
  MUST(sbrk(len_bytes) == begin + 1 && begin[0] == 7);
  MUST(std::all_of(begin + 4096, begin + len_bytes + 1, [](char byte) { return byte == 0; }));
  MUST(std::all_of(begin + len_bytes + 1, begin + len_bytes + 4096, [](char b) { return b == 0; }));
  void* const most = reinterpret_cast<void*>(-1);
  MUST(sbrk(intptr_t{1} << 40) == most && sbrk(0) == begin + 1 + len_bytes);
  char* const block = static_cast<char*>(std::malloc(1000));
  MUST(block != nullptr && pvas_owner(block) == pvas_self());
  std::free(block);
  return 0;
}

// Makes a system call without libc, as some libraries do.
inline long kernel_break(long wanted) {
  long result = SYS_brk;
  asm volatile("syscall" : "+a"(result) : "D"(wanted) : "rcx", "r11", "memory");
  return result;
}

inline int move_kernels_break() {
  const long now = kernel_break(0);
  for (const long wanted : {now - (1 << 20), now - 4096, now + 4096, now + (1 << 20)})
    MUST(kernel_break(wanted) == now);
  return 0;
}

inline int wait_for_ever() {
  pvas_export("waiting", &go_on, sizeof go_on);
  for (;;) pause();
}

inline int crash() {
  *static_cast<volatile int*>(nullptr) = 1;
  return 0;
}

inline int exec_sleep() {
  execl("/bin/sh", "sh", "-c", "read line; exit 6", nullptr);
  return 1;
}

inline int fork_is_no_task() {
  const pid_t child = fork();
  if (child == 0) _exit(pvas_self() == PVAS_ERR_NOT_A_TASK ? 0 : 1);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(pvas_self() >= 0);
  return 0;
}

// Holds the other's memory, reports that, and reads the memory after the other has died.
inline int hold_other() {
  void* address = nullptr;
  int owner = -1;
  MUST(pvas_import("held", guard_ms, &address, nullptr, &owner) == 0);
  MUST(pvas_hold(owner) == 0);
  MUST(pvas_export("holding", &go_on, sizeof go_on) == 0);
  while (go_on == 0) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  MUST(pvas_hold(owner) == PVAS_ERR_LOST);
  MUST(*static_cast<std::atomic<int>*>(address) == 42);
  MUST(pvas_release(owner) == 0);
  MUST(pvas_release(owner) == PVAS_ERR_ARGUMENT);
  return 0;
}

inline int be_held() {
  auto* const number = new std::atomic<int>(42);
  MUST(pvas_export("held", number, sizeof *number) == 0);
  void* address = nullptr;
  MUST(pvas_import("holding", guard_ms, &address, nullptr, nullptr) == 0);
  static_cast<std::atomic<int>*>(address)->store(1);
  kill(getpid(), SIGKILL);
  return 1;
}

inline int names() {
  int here = 0;
  void* address = nullptr;
  MUST(pvas_export("", &here, 4) == PVAS_ERR_ARGUMENT);
  MUST(pvas_export(std::string(64, 'x').c_str(), &here, 4) == PVAS_ERR_ARGUMENT);
  MUST(pvas_export("mine", &here, 4) == 0);
  MUST(pvas_export("mine", &here, 4) == PVAS_ERR_EXISTS);
  MUST(pvas_withdraw("mine") == 0);
  MUST(pvas_withdraw("mine") == PVAS_ERR_ARGUMENT);
  MUST(pvas_export("mine", &here, 4) == 0);
  MUST(pvas_import("nobody's", 20, &address, nullptr, nullptr) == PVAS_ERR_TIMEOUT);
  MUST(std::strstr(pvas_error_message(), "nobody's") != nullptr);
  return 0;
}

// Dies while it holds the space_state's lock, which no call of the library does.
inline int die_with_lock() {
  const auto self = shima::pvas::Membership::own();
  auto& space_state = const_cast<shima::pvas::SpaceState&>(self->space_state());
  space_state.names.lock = static_cast<std::uint32_t>(self->task()) + 1;
  kill(getpid(), SIGKILL);
  return 1;
}

inline int spawn_another() {
  pvas_space* space = nullptr;
  MUST(pvas_own(&space) == 0);
  char self[4096] = "";
  MUST(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  char* arguments[] = {const_cast<char*>("w"), const_cast<char*>("names"), nullptr};
  pvas_program program{};
  program.file = self;
  program.arguments = arguments;
  int task = -1;
  MUST(pvas_spawn(space, &program, &task) == 0);
  MUST(task != pvas_self());
  int status = -1;
  MUST(pvas_wait(space, task, guard_ms, &status) == 0 && status == 0);
  pvas_destroy(space);
  return 0;
}

// Checks what the test `Inherits` requested.
inline int inherits() {
  MUST(std::getenv("PVAS_TEST") != nullptr && std::getenv("HOME") == nullptr);
  char directory[100] = "";
  MUST(getcwd(directory, sizeof directory) != nullptr && std::strcmp(directory, "/") == 0);
  MUST(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(3, F_GETFD) < 0);
  char byte = 0;
  MUST(read(7, &byte, 1) == 1 && byte == 'x');
  MUST(umask(0) == 027);
  MUST(std::signal(SIGUSR2, SIG_DFL) == SIG_IGN && std::signal(SIGUSR1, SIG_DFL) == SIG_DFL);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  MUST(sigismember(&blocked, SIGWINCH) == 1 && sigismember(&blocked, SIGINT) == 0);
  cpu_set_t cores;
  MUST(sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1 &&
       CPU_ISSET(0, &cores));
  rlimit files{};
  MUST(getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur == 333);
  return 0;
}

inline int nothing() { return 0; }

// The waiting task has started, and maps nothing more.
inline int see_waiting() {
  void* address = nullptr;
  MUST(pvas_import("waiting", guard_ms, &address, nullptr, nullptr) == 0);
  return 0;
}

inline const std::map<std::string, int (*)()> works{
    {"show_list", show_list},
    {"walk_list", walk_list},
    {"own_memory", own_memory},
    {"own_heap", own_heap},
    {"kernels_break", move_kernels_break},
    {"wait", wait_for_ever},
    {"crash", crash},
    {"exec", exec_sleep},
    {"fork", fork_is_no_task},
    {"hold", hold_other},
    {"held", be_held},
    {"names", names},
    {"lock", die_with_lock},
    {"spawn", spawn_another},
    {"inherits", inherits},
    {"nothing", nothing},
    {"see_waiting", see_waiting},
};

}  // namespace space_workers
