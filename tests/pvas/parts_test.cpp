// The parts of spaces, without a space: a program's first stack, orders for tasks, ELF files.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pvas/root/loader/first_stack.h"
#include "pvas/root/loader/placing.h"
#include "pvas/shared/elf_image.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {
namespace {

// Reads an initial stack as the System V ABI defines it.
struct SeenStack {
  std::vector<std::string> arguments, environment;
  std::vector<AuxEntry> aux;

  explicit SeenStack(std::uint64_t pointer) {
    const auto* word = reinterpret_cast<const std::uint64_t*>(pointer);
    const std::uint64_t count = *word++;
    for (std::uint64_t i = 0; i < count; ++i) arguments.emplace_back(text(*word++));
    EXPECT_EQ(*word++, 0U);
    while (*word != 0) environment.emplace_back(text(*word++));
    for (++word; word[0] != AT_NULL; word += 2) aux.push_back({word[0], word[1]});
  }
  static const char* text(std::uint64_t address) { return reinterpret_cast<const char*>(address); }
  [[nodiscard]] std::uint64_t value(std::uint64_t type) const {
    for (const AuxEntry& entry : aux)
      if (entry.type == type) return entry.value;
    return 0;
  }
};

TEST(FirstStack, IsReadAsItWasMeant) {
  alignas(16) static std::array<std::byte, 8192> memory{};
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  for (std::size_t extra = 0; extra < 20;
       ++extra) {  // whatever its size, it begins at a multiple of 16
    FirstStack content{.arguments = {"prog", "", std::string(extra, 'a')},
                       .environment = {"A=1", "B="},
                       .shown_name = "./prog",
                       .platform = "x86_64",
                       .aux = {{AT_ENTRY, 77}, {AT_PAGESZ, 4096}},
                       .random = {1, 2, 3}};
    const auto pointer = write_first_stack(content, memory, address);
    ASSERT_TRUE(pointer);
    EXPECT_EQ(*pointer % 16, 0U);
    const SeenStack seen(*pointer);
    EXPECT_EQ(seen.arguments, content.arguments);
    EXPECT_EQ(seen.environment, content.environment);
    EXPECT_EQ(seen.value(AT_ENTRY), 77U);
    EXPECT_STREQ(SeenStack::text(seen.value(AT_EXECFN)), "./prog");
    EXPECT_STREQ(SeenStack::text(seen.value(AT_PLATFORM)), "x86_64");
    EXPECT_EQ(SeenStack::text(seen.value(AT_RANDOM))[2], 3);
  }
}

TEST(FirstStack, IsRefusedWhereItDoesNotFit) {
  std::array<std::byte, 4096> memory{};
  FirstStack content{.arguments = {std::string(5000, 'x')},
                     .environment = {},
                     .shown_name = "p",
                     .platform = {},
                     .aux = {}};
  const auto pointer = write_first_stack(content, memory, 0x10000);
  ASSERT_FALSE(pointer);
  EXPECT_EQ(pointer.error().code, Code::bad_count);
}

SpawnOrder some_order() {
  SpawnOrder order;
  order.file = "/bin/true";
  order.shown = "true";
  order.arguments = {"true", "", "x"};
  order.environment = {"HOME=/root"};
  order.umask = 027;
  order.ignored = 12;
  order.cpus = {3, 0, 0};
  order.limits[RLIMIT_NOFILE] = {5, 6};
  return order;
}

TEST(Order, ComesBackAsItWasSent) {
  const SpawnOrder order = some_order();
  const auto back = decode_order(encode(order));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->file, order.file);
  EXPECT_EQ(back->arguments, order.arguments);
  EXPECT_EQ(back->environment, order.environment);
  EXPECT_EQ(back->umask, order.umask);
  EXPECT_EQ(back->ignored, order.ignored);
  EXPECT_EQ(back->cpus, order.cpus);
  EXPECT_EQ(back->limits[RLIMIT_NOFILE].rlim_max, 6U);
}

TEST(Order, ThatIsTornIsRefused) {
  const std::string bytes = encode(some_order());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_order(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(decode_order(bytes + "x"));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<ElfImage> read_bytes(const std::string& bytes) {
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return read_elf_image(fd.get(), "it");
}

TEST(Elf, OwnProgramIsUnderstood) {
  const auto image = read_bytes(bytes_of("/proc/self/exe"));
  ASSERT_TRUE(image) << image.error().what;
  EXPECT_TRUE(image->interpreter);
  EXPECT_GT(image->entry, 0U);
  EXPECT_GT(image->headers, 0U);
}

// A damaged file is refused, or it is consistent: nothing is mapped outside its span.
TEST(Elf, DamagedHeadersDoNoHarm) {
  const std::string good = bytes_of("/proc/self/exe").substr(0, 4096);
  std::mt19937 random(20261122);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change)
      bytes[random() % 900] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    const auto image = read_bytes(bytes);
    if (!image) {
      ++refused;
      continue;
    }
    EXPECT_LT(image->entry, image->span);
    std::uint64_t end = 0;
    for (const Segment& segment : image->segments) {
      EXPECT_GE(page_down(segment.address), end);
      EXPECT_LE(segment.file_bytes, segment.memory_bytes);
      end = page_up(segment.address + segment.memory_bytes);
    }
    EXPECT_LE(end, image->span);
  }
  EXPECT_GT(refused, 100);
}

// Code sequences of glibc, of musl, and of neither.
TEST(Redirect, FindsCallsThatMap) {
  std::vector<std::uint8_t> code(256, 0x90);
  const auto put = [&](std::size_t at, std::initializer_list<int> bytes) {
    for (const int byte : bytes) code[at++] = static_cast<std::uint8_t>(byte);
  };
  put(10, {0xb8, 9, 0, 0, 0, 0x0f, 5});                     // mmap
  put(40, {0xb8, 9, 0, 0, 0, 0x4c, 0x89, 0xe7, 0x0f, 5});   // mov %r12, %rdi in between
  put(70, {0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 5});            // the end of syscall(2)
  put(100, {0xb8, 1, 0, 0, 0, 0x0f, 5});                    // write
  put(130, {0xb8, 9, 0, 0, 0, 0x48, 0x8b, 0x3f, 0x0f, 5});  // a load in between
  put(160, {0xb8, 9, 0, 1, 0, 0x0f, 5});                    // another number
  const std::vector<std::uint8_t> before = code;
  std::vector<std::uint8_t> island(island_bytes);
  MappingArea area{};
  EXPECT_EQ(redirect_calls(code.data(), code.size(), island.data(), &area), 3U);
  for (const std::size_t at : {10U, 40U, 70U}) EXPECT_EQ(code[at], 0xe9) << at;
  for (std::size_t i = 90; i < code.size(); ++i) EXPECT_EQ(code[i], before[i]) << i;
  std::int32_t distance = 0;
  std::memcpy(&distance, &code[11], sizeof distance);
  EXPECT_EQ(code.data() + 15 + distance, island.data());
  EXPECT_EQ(std::memcmp(island.data(), &before[10], 5), 0) << "the moved bytes come first";
}

}  // namespace
}  // namespace shima::pvas
