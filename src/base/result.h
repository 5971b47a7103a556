// How Shima reports failure.
//
// Every fallible function returns Result<T>. An Error has a code from a closed list, the errno that
// caused it, if any, and a text that names the failed operation. It is logged once, where it is
// decided, and translated to an MPI error class in one table (mpiio/file/errors.cpp). Codes travel
// between ranks as numbers, so their order is part of the protocol: if ranks fail differently, the
// largest code wins.
#pragma once

#include <cstdint>
#include <exception>
#include <expected>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace shima {

enum class Code : std::uint8_t {
  ok = 0,
  bad_argument,
  bad_count,
  bad_type,
  bad_access_mode,
  bad_file_name,
  bad_file,
  bad_handle,
  not_same,
  cancelled,
  no_such_file,
  file_exists,
  file_in_use,
  access_denied,
  read_only,
  unsupported_operation,
  unsupported_datarep,
  duplicate_datarep,
  conversion,
  no_memory,
  no_space,
  quota,
  io,
  timed_out,
  peer_lost,
  internal,
};

// The text of an error. A copy for which there is no memory is empty, so that errors can be passed
// on after memory has run out.
struct Words : std::string {
  Words() = default;
  Words(std::string text) noexcept : std::string(std::move(text)) {}
  Words(const char* text) noexcept { set(text); }
  // The base's copy constructor could throw.
  // NOLINTNEXTLINE(bugprone-copy-constructor-init)
  Words(const Words& other) noexcept : std::string() { set(other); }
  Words(Words&&) noexcept = default;
  Words& operator=(const Words& other) noexcept {
    if (this != &other) set(other);
    return *this;
  }
  Words& operator=(Words&&) noexcept = default;
  ~Words() = default;

 private:
  void set(std::string_view text) noexcept {
    try {
      assign(text);
    } catch (const std::exception&) {
      clear();
    }
  }
};

struct Error {
  Code code = Code::internal;
  int sys_errno = 0;
  Words what;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, Words what, int sys_errno = 0) {
  return std::unexpected(Error{code, sys_errno, std::move(what)});
}

// A failure whose code is already decided; without a text if creating the text fails.
template <class MakeWords>
[[nodiscard]] std::unexpected<Error> fail_settled(Code code, int sys_errno,
                                                  MakeWords make) noexcept {
  try {
    return fail(code, make(), sys_errno);
  } catch (const std::exception&) {
    return fail(code, Words(), sys_errno);
  }
}

// The status of a result, without its value.
template <class T>
[[nodiscard]] Status status_of(const Result<T>& result) {
  return result ? Status{} : Status(std::unexpected(result.error()));
}

// The code for an errno value of a system call that failed on a file.
[[nodiscard]] Code code_of_errno(int sys_errno);

// A failure whose code follows from `sys_errno`; `what` names the operation and its object.
[[nodiscard]] std::unexpected<Error> fail_errno(int sys_errno, std::string what);

// "no space left (ENOSPC): writing 4096 bytes at 0 of /tmp/x".
[[nodiscard]] std::string describe(const Error& error);

// The short name of a code, for logs and messages.
[[nodiscard]] const char* name_of(Code code);

// Returns the Result of `body`; an exception becomes an error.
template <class Body>
[[nodiscard]] auto caught(Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "out of memory");
  } catch (const std::exception& exception) {
    return fail(Code::internal, exception.what());
  }
}

}  // namespace shima

// Returns the error of a Status or Result to the caller.
#define SHIMA_TRY(expression)                                                \
  do {                                                                       \
    if (auto shima_try_status = (expression); !shima_try_status.has_value()) \
      return std::unexpected(std::move(shima_try_status).error());           \
  } while (false)

#define SHIMA_CONCAT_INNER(a, b) a##b
#define SHIMA_CONCAT(a, b)       SHIMA_CONCAT_INNER(a, b)
// Declares `declaration` from the value of a Result, or returns its error.
#define SHIMA_TRY_ASSIGN(declaration, expression) \
  SHIMA_TRY_ASSIGN_INNER(declaration, expression, SHIMA_CONCAT(shima_result_, __LINE__))
#define SHIMA_TRY_ASSIGN_INNER(declaration, expression, name)             \
  auto name = (expression);                                               \
  if (!name.has_value()) return std::unexpected(std::move(name).error()); \
  declaration = *std::move(name)
