// fmt, compiled once.
//
// The distributions ship fmt as a shared library, which a build must not need, and as
// headers, which cost three to four seconds in every source that formats one number.  So this one
// source takes the header-only form, and the compiler is told (-fkeep-inline-functions,
// -fno-inline) to keep what is inline in it as functions for the others to link with.
// cmake/ShimaOptions.cmake tries whether that works with the fmt at hand, and goes back to
// header-only everywhere where it does not.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// Templates are kept only where they are used.
namespace shima::fmt_once {
[[gnu::used]] void use_everything(std::string& out, double number, float small_number) {
  out += fmt::format("{} {:.3f} {:x} {:>8} {}", number, number, 42, "text", small_number);
  out += fmt::format("{:L} {} {} {}", 1000, true, 'c', static_cast<const void*>(&out));
  out += fmt::to_string(number) + fmt::to_string(small_number);
  fmt::format_to(std::back_inserter(out), "{:{}}", number, 8);
  fmt::print(stderr, "{}", out);
  fmt::print("{}", out);
  fmt::memory_buffer buffer;
  fmt::format_to(fmt::appender(buffer), "{}", std::string_view(out));
}
}  // namespace shima::fmt_once
