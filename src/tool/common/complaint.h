// Errors of the library, said as the command says them.
#pragma once

#include <string>

#include "base/result.h"
#include "tool/common/failure.h"

namespace shima::tool {

// "shima: thing: rule; mend", on stderr.
void complain(const Failure& failure);

[[nodiscard]] Failure failure_of(const std::string& thing, const Error& error);

// Prints the error, if it is one; whether it was none.
bool succeeded(const std::string& thing, const Status& status);

}  // namespace shima::tool
