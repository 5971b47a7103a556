// fmt, compiled once.
//
// The distributions ship fmt as a shared library, which a build must not need, and as headers,
// which cost three to four seconds in every source that formats one number.  So this one source
// includes the header-only form, and compiler options (-fkeep-inline-functions, -fno-inline) keep
// its inline functions as symbols for the other sources to link with. cmake/ShimaOptions.cmake
// tests whether that works with the installed fmt, and otherwise uses the header-only form in every
// source.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// The compiler emits templates only if they are used.
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
