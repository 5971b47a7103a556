#include "pvas/root/loader/first_stack.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace shima::pvas {
namespace {

// Strings grow down from the top; the words go below them, once their number is known.
class Writer {
 public:
  Writer(std::span<std::byte> stack, std::uint64_t address)
      : stack_(stack), address_(address), top_(stack.size()) {}

  std::uint64_t put(const void* bytes, std::size_t size) {
    if (size > top_) {
      full_ = true;
      return 0;
    }
    top_ -= size;
    std::memcpy(stack_.data() + top_, bytes, size);
    return address_ + top_;
  }
  std::uint64_t put(const std::string& text) { return put(text.c_str(), text.size() + 1); }

  // The initial stack pointer is a multiple of 16.
  std::uint64_t put_words(const std::vector<std::uint64_t>& words) {
    const std::size_t size = words.size() * sizeof(std::uint64_t);
    if (size + 16 > top_) {
      full_ = true;
      return 0;
    }
    top_ -= (address_ + top_ - size) % 16;
    return put(words.data(), size);
  }

  [[nodiscard]] bool full() const { return full_; }

 private:
  std::span<std::byte> stack_;
  std::uint64_t address_;
  std::size_t top_;
  bool full_ = false;
};

bool differs_in_a_task(std::uint64_t type) {
  switch (type) {
    case AT_NULL:
    case AT_PHDR:
    case AT_PHENT:
    case AT_PHNUM:
    case AT_BASE:
    case AT_ENTRY:
    case AT_EXECFD:
    case AT_EXECFN:
    case AT_RANDOM:
    case AT_PLATFORM:
    case AT_BASE_PLATFORM:
    case AT_SECURE:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::vector<AuxEntry>> inherited_aux() {
  const UniqueFd fd(::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening /proc/self/auxv");
  std::vector<AuxEntry> kept;
  AuxEntry entry{};
  while (::read(fd.get(), &entry, sizeof entry) == sizeof entry && entry.type != AT_NULL)
    if (!differs_in_a_task(entry.type)) kept.push_back(entry);
  return kept;
}

Result<std::uint64_t> write_first_stack(const FirstStack& content, std::span<std::byte> stack,
                                        std::uint64_t address) {
  Writer writer(stack, address);
  const std::uint64_t zero = 0;
  writer.put(&zero, sizeof zero);
  const std::uint64_t name = writer.put(content.shown_name);
  const std::uint64_t platform = content.platform.empty() ? 0 : writer.put(content.platform);
  const std::uint64_t random = writer.put(content.random.data(), content.random.size());
  // Some programs (setproctitle) expect argv and environment in one block, in this order.
  std::vector<std::uint64_t> environment;
  for (auto text = content.environment.rbegin(); text != content.environment.rend(); ++text)
    environment.push_back(writer.put(*text));
  std::vector<std::uint64_t> arguments;
  for (auto text = content.arguments.rbegin(); text != content.arguments.rend(); ++text)
    arguments.push_back(writer.put(*text));

  std::vector<std::uint64_t> words{arguments.size()};
  words.insert(words.end(), arguments.rbegin(), arguments.rend());
  words.push_back(0);
  words.insert(words.end(), environment.rbegin(), environment.rend());
  words.push_back(0);
  std::vector<AuxEntry> aux = content.aux;
  aux.push_back({AT_EXECFN, name});
  aux.push_back({AT_RANDOM, random});
  if (platform != 0) aux.push_back({AT_PLATFORM, platform});
  aux.push_back({AT_NULL, 0});
  for (const AuxEntry& entry : aux) words.insert(words.end(), {entry.type, entry.value});
  const std::uint64_t pointer = writer.put_words(words);
  if (writer.full())
    return fail(Code::bad_count, "the arguments and the environment do not fit on the stack",
                E2BIG);
  return pointer;
}

}  // namespace shima::pvas
