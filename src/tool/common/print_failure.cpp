#include "tool/common/print_failure.h"

#include <fmt/format.h>

#include <cstdio>

namespace shima::tool {
namespace {

const char* advice_for(Code code) {
  switch (code) {
    case Code::no_such_file:
      return "check the name and the list of targets";
    case Code::file_exists:
      return "remove it first, or use another name";
    case Code::file_in_use:
      return "try again when no process uses it";
    case Code::access_denied:
      return "check its owner and permissions";
    case Code::no_space:
    case Code::quota:
      return "free space there";
    case Code::bad_file:
      return "check it with `shima fsck`";
    case Code::bad_argument:
    case Code::bad_file_name:
      return "correct it";
    default:
      return "see the manual, shima(1)";
  }
}

}  // namespace

void complain(const Failure& failure) {
  fmt::print(stderr, "shima: {}: {}; {}\n", failure.thing, failure.rule, failure.advice);
}

Failure failure_of(const std::string& thing, const Error& error) {
  return {thing, describe(error), advice_for(error.code)};
}

bool succeeded(const std::string& thing, const Status& status) {
  if (!status) complain(failure_of(thing, status.error()));
  return status.has_value();
}

}  // namespace shima::tool
