// Tests whether a source that uses fmt links with cmake/fmt/fmt_once.cpp.
#include <fmt/format.h>

#include <cstdint>
#include <string>

int main(int argc, char** argv) {
  std::string out = fmt::format("{} {:.2f} {:#x} {:>{}}", argc, 1.5 * argc, argc, argv[0], 10);
  out += fmt::format("{} {} {}", std::uint64_t{1}, std::string_view(out), argc > 1);
  out += fmt::to_string(argc) + fmt::to_string(2.5 * argc);
  fmt::format_to(std::back_inserter(out), "{:<13} {:e}", argv[0], 1e10 * argc);
  fmt::print("{}\n", out);
  fmt::print(stderr, "{}\n", fmt::format(fmt::runtime("{}"), argc));
  fmt::memory_buffer buffer;
  fmt::format_to(fmt::appender(buffer), "{}", out);
  return buffer.size() > 0 ? 0 : 1;
}
