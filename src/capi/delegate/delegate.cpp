// The calls of delegate.h.
#include "shima/delegate.h"

#include <algorithm>
#include <cerrno>

#include "capi/delegate/delegate_seat.h"
#include "capi/pvas/errors.h"
#include "delegate/file_operations.h"
#include "delegate/in_space.h"

struct delegate_desk {
  std::unique_ptr<shima::delegate::NamedDesk> named;
};

namespace {

using shima::Code;
using shima::fail;
using shima::fail_errno;
using shima::Result;
using shima::Status;
using shima::capi::guarded_pvas;
using shima::capi::judge_payload;
using shima::capi::requester_of;
using namespace shima::delegate;

static_assert(DELEGATE_FIRST_OPERATION == first_own_operation);
static_assert(DELEGATE_LEFT == operation_left);
static_assert(DELEGATE_FILE_READ == operation_file_read);
static_assert(DELEGATE_FILE_WRITE == operation_file_write);
static_assert(DELEGATE_FILE_SYNC == operation_file_sync);

constexpr std::uint32_t usual_seats = 64;

std::optional<std::chrono::milliseconds> limit_of(int timeout_ms) {
  if (timeout_ms < 0) return {};
  return std::chrono::milliseconds(timeout_ms);
}

Result<Delegatee*> delegatee_of(delegate_desk* desk) {
  if (desk == nullptr) return fail(Code::bad_argument, "the desk is NULL");
  return &desk->named->delegatee();
}

// Converts the return value of a C handler.
Result<std::int64_t> answer_of(std::int64_t said) {
  if (said >= 0) return said;
  if (said == -ESRCH) return fail(Code::peer_lost, "a process that an operation needs", ESRCH);
  return fail_errno(static_cast<int>(-std::max<std::int64_t>(said, -4095)),
                    "an operation of the delegatee");
}

delegate_job shown(const ReceivedRequest& job) {
  return {.operation = job.operation,
          .requester = job.requester.task,
          .arguments = {job.arguments[0], job.arguments[1], job.arguments[2]},
          .data = job.payload.data(),
          .size = job.payload.size(),
          .id = {job.seat, reinterpret_cast<std::uint64_t>(job.slot)}};
}

Result<Request> understood(const delegate_request* request) {
  if (request == nullptr || (request->size > 0 && request->data == nullptr))
    return fail(Code::bad_argument, "the request is NULL, or its payload is NULL and not empty");
  Request made;
  made.operation = request->operation;
  std::ranges::copy(request->arguments, made.arguments.begin());
  made.payload = {static_cast<std::byte*>(request->data), request->size};
  switch (request->direction) {
    case DELEGATE_OUT:
      made.direction = PayloadDirection::to_delegatee;
      return made;
    case DELEGATE_IN:
      made.direction = PayloadDirection::from_delegatee;
      return made;
    case DELEGATE_BOTH:
      made.direction = PayloadDirection::both;
      return made;
  }
  return fail(Code::bad_argument, "a request whose direction is not a delegate_direction");
}

}  // namespace

int delegate_open(const char* name, const delegate_options* options,
                  delegate_desk** desk) noexcept {
  return guarded_pvas([&]() -> Status {
    if (name == nullptr || desk == nullptr)
      return fail(Code::bad_argument, "opening a desk: the name or the result pointer is NULL");
    const delegate_options wanted = options != nullptr ? *options : delegate_options{};
    auto made = std::make_unique<delegate_desk>();
    SHIMA_TRY_ASSIGN(made->named,
                     NamedDesk::open(name, {.seats = wanted.seats == 0 ? usual_seats : wanted.seats,
                                            .spin_us = wanted.spin_us,
                                            .is_for_group = wanted.group != 0}));
    SHIMA_TRY(offer_file_operations(made->named->delegatee()));
    *desk = made.release();
    return {};
  });
}

int delegate_offer(delegate_desk* desk, int operation, delegate_function function,
                   void* context) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(Delegatee* const delegatee, delegatee_of(desk));
    if (function == nullptr || (operation != operation_left && operation < first_net_operation))
      return fail(Code::bad_argument,
                  "offering an operation: it has no function, or its number is reserved for Shima");
    return delegatee->offer(operation,
                            [=](const ReceivedRequest& job) -> Result<std::optional<std::int64_t>> {
                              const delegate_job view = shown(job);
                              const std::int64_t said = function(context, &view);
                              if (said == DELEGATE_LATER) return std::nullopt;
                              return answer_of(said);
                            });
  });
}

int delegate_finish(delegate_desk* desk, const delegate_job* job, int64_t value) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(Delegatee* const delegatee, delegatee_of(desk));
    if (job == nullptr || value == DELEGATE_LATER)
      return fail(Code::bad_argument,
                  "finishing a job: the job is NULL, or the value is DELEGATE_LATER");
    ReceivedRequest meant;
    meant.seat = static_cast<std::uint32_t>(job->id[0]);
    meant.slot = reinterpret_cast<Slot*>(job->id[1]);
    delegatee->finish(meant, answer_of(value));
    return {};
  });
}

int64_t delegate_serve(delegate_desk* desk, int timeout_ms) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Delegatee* const delegatee, delegatee_of(desk));
    SHIMA_TRY_ASSIGN(const std::uint64_t served, delegatee->serve(limit_of(timeout_ms)));
    return static_cast<std::int64_t>(served);
  });
}

int64_t delegate_serve_some(delegate_desk* desk, int timeout_ms) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Delegatee* const delegatee, delegatee_of(desk));
    SHIMA_TRY_ASSIGN(const std::uint64_t served, delegatee->serve_some(limit_of(timeout_ms)));
    return static_cast<std::int64_t>(served);
  });
}

void delegate_stop(delegate_desk* desk) noexcept {
  if (desk != nullptr) desk->named->delegatee().stop();
}

void delegate_close(delegate_desk* desk) noexcept { delete desk; }

int delegate_join(const char* name, int timeout_ms, const delegate_options* options,
                  delegate_seat** seat) noexcept {
  return guarded_pvas([&]() -> Status {
    if (name == nullptr || seat == nullptr)
      return fail(Code::bad_argument, "joining a desk: the name or the result pointer is NULL");
    RequesterOptions wanted;
    if (options != nullptr) {
      wanted.spin_us = options->spin_us;
      if (options->inline_bytes != 0)
        wanted.inline_bytes = static_cast<std::size_t>(std::max(options->inline_bytes, 0));
    }
    auto made = std::make_unique<delegate_seat>();
    SHIMA_TRY_ASSIGN(made->named, NamedSeat::take(name, wanted, limit_of(timeout_ms)));
    *seat = made.release();
    return {};
  });
}

int64_t delegate_read(delegate_seat* seat, int file, void* data, size_t size,
                      int64_t offset) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY(judge_payload(data, size));
    return read_file(*requester, file, {static_cast<std::byte*>(data), size}, offset);
  });
}

int64_t delegate_write(delegate_seat* seat, int file, const void* data, size_t size,
                       int64_t offset) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY(judge_payload(data, size));
    return write_file(*requester, file, {static_cast<const std::byte*>(data), size}, offset);
  });
}

int delegate_sync(delegate_seat* seat, int file) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    return sync_file(*requester, file);
  });
}

int64_t delegate_call(delegate_seat* seat, const delegate_request* request) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY_ASSIGN(const Request meant, understood(request));
    return requester->call(meant);
  });
}

int delegate_start(delegate_seat* seat, const delegate_request* request,
                   uint64_t* number) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    if (number == nullptr)
      return fail(Code::bad_argument, "starting a request: the pointer to its number is NULL");
    SHIMA_TRY_ASSIGN(const Request meant, understood(request));
    SHIMA_TRY_ASSIGN(*number, requester->start(meant));
    return {};
  });
}

int64_t delegate_wait(delegate_seat* seat, uint64_t number) noexcept {
  return guarded_pvas([&]() -> Result<std::int64_t> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    return requester->wait(number);
  });
}

int delegate_test(delegate_seat* seat, uint64_t number) noexcept {
  return guarded_pvas([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(Requester* const requester, requester_of(seat));
    SHIMA_TRY_ASSIGN(const bool done, requester->is_done(number));
    return done ? 1 : 0;
  });
}

void delegate_leave(delegate_seat* seat) noexcept { delete seat; }
