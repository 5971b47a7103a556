#include "pvas/launch/spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/process/cpu_mask.h"

extern char** environ;

namespace shima::pvas {
namespace {

// umask(2) can only be read by changing it, which other threads would see.
std::uint32_t own_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "Umask:") continue;
    unsigned mask = 022;
    status >> std::oct >> mask;
    return mask;
  }
  return 022;
}

std::uint64_t blocked_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
  std::uint64_t bits = 0;
  for (int number = 1; number <= 64; ++number)
    if (::sigismember(&set, number) == 1) bits |= std::uint64_t{1} << (number - 1);
  return bits;
}

std::uint64_t ignored_signals() {
  std::uint64_t bits = 0;
  for (int number = 1; number <= 64; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      bits |= std::uint64_t{1} << (number - 1);
  }
  return bits;
}

std::vector<std::uint8_t> own_cpus() {
  const CpuMask mask = CpuMask::own();
  if (mask.count() == 0) return {};
  std::vector<std::uint8_t> bytes(sizeof mask.words);
  std::memcpy(bytes.data(), mask.words.data(), bytes.size());
  return bytes;
}

// The descriptors that exec(2) would leave open.
Result<std::vector<GivenFile>> inherited_files() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  if (!directory) return fail_errno(errno, "listing open files");
  std::vector<GivenFile> files;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd < 0 || fd == ::dirfd(directory.get())) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) files.push_back({fd, fd});
  }
  return files;
}

Result<UniqueFd> in_memory(const std::string& bytes) {
  UniqueFd fd(::memfd_create("shima-order", MFD_CLOEXEC));
  if (!fd) return fail_errno(errno, "creating memory for a spawn order");
  if (::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(errno, "writing a spawn order");
  return fd;
}

Status send_files(int socket, const std::vector<GivenFile>& files) {
  for (std::size_t begin = 0; begin < files.size(); begin += files_at_once) {
    const std::size_t end = std::min(begin + files_at_once, files.size());
    Message message;
    message.word = Word::files;
    std::vector<int> fds;
    for (std::size_t i = begin; i < end; ++i) {
      message.numbers[i - begin] = files[i].there;
      fds.push_back(files[i].here);
    }
    SHIMA_TRY(send_message(socket, message, fds));
  }
  return {};
}

std::string text_of(const Message& message) {
  return {message.text.data(), ::strnlen(message.text.data(), message.text.size())};
}

std::unexpected<Error> refusal(const Message& message) {
  return fail(static_cast<Code>(message.value), text_of(message), message.other);
}

// A root that refuses stops reading, so sending may fail; its answer has been sent nevertheless.
Result<Received> answer_to(const Status& sent, int socket) {
  if (!sent && sent.error().code != Code::peer_lost) return std::unexpected(sent.error());
  auto answer = receive_message(socket);
  if (sent || (answer && answer->message.word == Word::refused)) return answer;
  return std::unexpected(sent.error());
}

std::unexpected<Error> surprise() {
  return fail(Code::not_same, "a space's root sent an unexpected message");
}

}  // namespace

Result<SpawnRequest> like_this_process(const Program& program) {
  SpawnRequest request;
  request.directory = UniqueFd(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!request.directory) return fail_errno(errno, "opening the working directory");
  SpawnOrder& order = request.order;
  char* const real = ::realpath(program.file.c_str(), nullptr);
  order.file = real != nullptr ? real : program.file;
  std::free(real);
  order.shown = program.shown;
  order.name = program.shown.substr(program.shown.rfind('/') + 1);
  order.arguments = program.arguments;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    order.environment.emplace_back(*entry);
  order.umask = own_umask();
  order.blocked = blocked_signals();
  order.ignored = ignored_signals();
  order.niceness = ::getpriority(PRIO_PROCESS, 0);
  order.cpus = own_cpus();
  for (unsigned i = 0; i < order.limits.size(); ++i)
    ::getrlimit(static_cast<__rlimit_resource>(i), &order.limits[i]);
  SHIMA_TRY_ASSIGN(request.files, inherited_files());
  return request;
}

Result<StartedTask> StartedTask::start(UniqueFd socket, const SpawnRequest& request) {
  SHIMA_TRY_ASSIGN(const UniqueFd order, in_memory(encode(request.order)));
  Message message;
  message.word = Word::spawn;
  message.value = static_cast<std::int32_t>(request.files.size());
  message.launcher = request.launcher;
  message.expected = request.expected;
  Status sent =
      send_message(socket.get(), message, std::array{order.get(), request.directory.get()});
  if (sent) sent = send_files(socket.get(), request.files);
  SHIMA_TRY_ASSIGN(const Received answer, answer_to(sent, socket.get()));
  if (answer.message.word == Word::refused) return refusal(answer.message);
  if (answer.message.word != Word::started) return surprise();
  return StartedTask(std::move(socket), answer.message.value, answer.message.other);
}

Status StartedTask::signal(int number) const {
  Message message;
  message.word = Word::signal;
  message.value = number;
  return send_message(socket_.get(), message);
}

Result<std::optional<TaskChange>> StartedTask::next_change(
    std::optional<std::chrono::milliseconds> limit) const {
  pollfd wanted{socket_.get(), POLLIN, 0};
  const int ready = ::poll(&wanted, 1, limit ? static_cast<int>(limit->count()) : -1);
  if (ready < 0 && errno != EINTR) return fail_errno(errno, "waiting for a task");
  if (ready <= 0) return std::nullopt;
  SHIMA_TRY_ASSIGN(const Received received, receive_message(socket_.get()));
  const Message& message = received.message;
  switch (message.word) {
    case Word::ended:
      return TaskChange{Turn::ended, message.value, text_of(message)};
    case Word::stopped:
      return TaskChange{Turn::stopped, message.value, {}};
    case Word::continued:
      return TaskChange{Turn::continued, message.value, {}};
    case Word::refused:
      return refusal(message);
    default:
      return surprise();
  }
}

Status keep_root(const UniqueFd& socket) {
  Message message;
  message.word = Word::keep;
  const Status sent = send_message(socket.get(), message);
  SHIMA_TRY_ASSIGN(const Received answer, answer_to(sent, socket.get()));
  if (answer.message.word == Word::refused) return refusal(answer.message);
  if (answer.message.word != Word::kept) return surprise();
  return {};
}

}  // namespace shima::pvas
