// ELF files as their three readers see them: the launcher (how a program starts), spaces (whether
// it can be a task) and the audit library (the name of a library).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "audit/soname.h"
#include "base/elf_header.h"
#include "base/unique_fd.h"
#include "pvas/shared/elf_file.h"
#include "tool/launch/elf.h"

namespace shima {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file in memory, with a path for readers that open it.
struct MemoryFile {
  UniqueFd fd{::memfd_create("elf", MFD_CLOEXEC)};
  std::string path = "/proc/self/fd/" + std::to_string(fd.get());

  explicit MemoryFile(const std::string& bytes) {
    EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
};

std::string soname_of(const std::string& path) {
  audit::Path soname{};
  return audit::read_soname(path.c_str(), soname) ? std::string(soname.view()) : "";
}

TEST(Elf, OwnProgramIsDynamic) {
  const auto program = tool::inspect_program("/proc/self/exe");
  EXPECT_EQ(program.kind, tool::ProgramKind::dynamic_elf);
  EXPECT_TRUE(std::filesystem::exists(program.loader)) << program.loader;
  EXPECT_EQ(soname_of("/proc/self/exe"), "");
}

TEST(Elf, LibraryHasItsName) {
  Dl_info libc{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getenv"), &libc), 0);
  EXPECT_EQ(soname_of(libc.dli_fname), "libc.so.6");
}

TEST(Elf, ScriptHasItsInterpreter) {
  const MemoryFile script("#! /usr/bin/env -S python3 -u\nprint()\n");
  const auto program = tool::inspect_program(script.path);
  EXPECT_EQ(program.kind, tool::ProgramKind::script);
  EXPECT_EQ(program.shebang, (std::vector<std::string>{"/usr/bin/env", "-S", "python3", "-u"}));
}

TEST(Elf, HeaderIsJudged) {
  ElfHeader good;
  std::memcpy(&good, bytes_of("/proc/self/exe").data(), sizeof good);
  EXPECT_EQ(flaw_of(good), ElfFlaw::none);
  const auto flaw_with = [&](auto change) {
    ElfHeader header = good;
    change(header);
    return flaw_of(header);
  };
  EXPECT_EQ(flaw_with([](auto& header) { header.e_ident[EI_MAG3] = 'f'; }), ElfFlaw::not_elf);
  EXPECT_EQ(flaw_with([](auto& header) { header.e_ident[EI_CLASS] ^= 3; }), ElfFlaw::other_class);
  EXPECT_EQ(flaw_with([](auto& header) { header.e_ident[EI_DATA] ^= 3; }), ElfFlaw::other_class);
  EXPECT_EQ(flaw_with([](auto& header) { ++header.e_phentsize; }), ElfFlaw::damaged_segments);
  EXPECT_EQ(flaw_with([](auto& header) { header.e_phnum = 0; }), ElfFlaw::damaged_segments);
  EXPECT_EQ(flaw_with([](auto& header) { header.e_phnum = 0xffff; }), ElfFlaw::damaged_segments);
}

TEST(Elf, FileThatEndsEarlyIsRefused) {
  const std::string good = bytes_of("/proc/self/exe");
  const auto whole = pvas::read_elf_file(MemoryFile(good).fd.get(), "it");
  ASSERT_TRUE(whole) << whole.error().what;
  const std::size_t headers = whole->header.e_phoff + whole->segments.size() * sizeof(ElfSegment);
  for (const std::size_t size : {std::size_t{0}, std::size_t{2}, std::size_t{4},
                                 sizeof(ElfHeader) - 1, sizeof(ElfHeader), headers - 1, headers}) {
    const MemoryFile file(good.substr(0, size));
    EXPECT_EQ(tool::inspect_program(file.path).kind, tool::ProgramKind::unknown) << size;
    EXPECT_FALSE(pvas::read_elf_file(file.fd.get(), "it")) << size;
    EXPECT_EQ(soname_of(file.path), "") << size;
  }
}

// Whatever the headers say, a name has at most its limit, and only a dynamic program has a loader.
TEST(Elf, DamagedHeadersDoNoHarm) {
  Dl_info libc{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getenv"), &libc), 0);
  const std::string good = bytes_of(libc.dli_fname).substr(0, 4096);
  std::mt19937 random(20261123);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change)
      bytes[random() % 900] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    const MemoryFile file(bytes);
    EXPECT_LT(soname_of(file.path).size(), audit::longest_path);
    const auto program = tool::inspect_program(file.path);
    EXPECT_EQ(program.kind == tool::ProgramKind::dynamic_elf, !program.loader.empty());
  }
}

}  // namespace
}  // namespace shima
