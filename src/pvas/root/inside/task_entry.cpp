#include "pvas/root/inside/task_entry.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "pvas/root/inside/bare.h"

namespace shima::pvas {
namespace {

constexpr int f_dupfd = 0;

struct KernelAction {
  std::uint64_t handler, flags, restorer, mask;
};

[[noreturn]] void give_up(EntryOrder& order, EntryStep step, long result) {
  order.failed = step;
  order.failed_errno = static_cast<int>(-result);
  for (;;) bare::call(SYS_exit_group, entry_failed_status);
}

void must(EntryOrder& order, EntryStep step, long result) {
  if (bare::failed(result)) give_up(order, step, result);
}

// Gives the task's files the numbers they had in the starting process. All of them first move above
// every number that is used in the task, so that none overwrites another.
void move_files(EntryOrder& order) {
  int above = order.origin_at;
  for (int i = 0; i < order.file_count; ++i)
    if (order.files[i].to > above) above = order.files[i].to;
  ++above;
  const auto lift = [&](int fd) {
    const long high = bare::call(SYS_fcntl, fd, f_dupfd, above);
    must(order, EntryStep::files, high);
    return static_cast<int>(high);
  };
  for (int i = 0; i < order.file_count; ++i) order.files[i].from = lift(order.files[i].from);
  order.origin_fd = lift(order.origin_fd);
  must(order, EntryStep::files, bare::call(SYS_close_range, 0, above - 1, 0));
  for (int i = 0; i < order.file_count; ++i)
    must(order, EntryStep::files, bare::call(SYS_dup2, order.files[i].from, order.files[i].to));
  constexpr int close_on_exec = 02000000;
  must(order, EntryStep::origin,
       bare::call(SYS_dup3, order.origin_fd, order.origin_at, close_on_exec));
  must(order, EntryStep::files, bare::call(SYS_close_range, above, -1L & 0xffffffff, 0));
}

void reset_signals(EntryOrder& order) {
  for (int number = 1; number <= 64; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    const bool ignored = (order.ignored >> (number - 1) & 1) != 0;
    const KernelAction action{ignored ? 1U : 0U, 0, 0, 0};
    must(order, EntryStep::signals,
         bare::call(SYS_rt_sigaction, number, bare::word(&action), 0, sizeof action.mask));
  }
  must(order, EntryStep::signals,
       bare::call(SYS_rt_sigprocmask, SIG_SETMASK, bare::word(&order.blocked), 0,
                  sizeof order.blocked));
}

// A limit on the size of the address space would count all tasks, so the root's stays. A limit that
// cannot be set is at least not looser than the root's.
void set_limits(EntryOrder& order) {
  for (unsigned i = 0; i < limit_count; ++i) {
    if (i == RLIMIT_AS || i == RLIMIT_DATA) continue;
    bare::call(SYS_prlimit64, 0, i, bare::word(&order.limits[i]), 0);
  }
}

[[noreturn]] void enter_program(std::uint64_t stack, std::uint64_t entry) {
  // In rdx the program expects a function for exit(3), or 0.
  asm volatile(
      "mov %0, %%rsp\n"
      "xor %%edx, %%edx\n"
      "xor %%ebp, %%ebp\n"
      "jmp *%1"
      :
      : "r"(stack), "r"(entry)
      : "rdx", "memory");
  __builtin_unreachable();
}

}  // namespace

extern "C" [[noreturn]] void shima_enter_task(EntryOrder* given) {
  EntryOrder& order = *given;
  bare::call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (bare::call(SYS_getppid) != order.root_pid) give_up(order, EntryStep::parent, -3);
  must(order, EntryStep::directory, bare::call(SYS_fchdir, order.directory_fd));
  // The group may belong to another session; then the task gets a new group.
  if (order.process_group == 0 || bare::failed(bare::call(SYS_setpgid, 0, order.process_group)))
    bare::call(SYS_setpgid, 0, 0);
  move_files(order);
  bare::call(SYS_umask, order.umask);
  bare::call(SYS_setpriority, 0, 0, order.niceness);
  bare::call(SYS_prctl, PR_SET_NAME, bare::word(order.name.data()));
  if (order.cpu_bytes != 0)
    must(order, EntryStep::affinity,
         bare::call(SYS_sched_setaffinity, 0, static_cast<long>(order.cpu_bytes),
                    bare::word(order.cpus.data())));
  set_limits(order);
  reset_signals(order);
  order.failed = EntryStep::done;
  order.place->pid = static_cast<std::int32_t>(bare::call(SYS_getpid));
  order.place->state = PlaceState::running;
  enter_program(order.stack, order.entry);
}

// The new process has a stack without a frame; it takes its order from the stack.
asm(R"(
  .pushsection .text
shima_clone_task:
  mov %rdi, -8(%rsi)
  sub $16, %rsi
  mov $56, %eax
  mov %rdx, %rdi
  xor %edx, %edx
  xor %r10d, %r10d
  xor %r8d, %r8d
  syscall
  test %rax, %rax
  jz 1f
  ret
1:
  xor %ebp, %ebp
  mov 8(%rsp), %rdi
  call shima_enter_task
  hlt
  .popsection
)");
extern "C" long shima_clone_task(EntryOrder* order, std::uint64_t stack, unsigned long flags);

long start_task(EntryOrder* order) {
  // Below what ld.so will read.
  const std::uint64_t stack = (order->stack - 256) & ~std::uint64_t{15};
  return shima_clone_task(order, stack, CLONE_VM | SIGCHLD);
}

}  // namespace shima::pvas
