// Prints errors of the library in the form of the command's own errors.
#pragma once

#include <string>

#include "base/result.h"
#include "tool/common/failure.h"

namespace shima::tool {

// "shima: thing: rule; advice", on stderr.
void complain(const Failure& failure);

[[nodiscard]] Failure failure_of(const std::string& thing, const Error& error);

// Prints the error, if there is one; returns whether there was none.
bool succeeded(const std::string& thing, const Status& status);

}  // namespace shima::tool
