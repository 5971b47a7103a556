// Waiting for requests, if some of them are ours (request.h tells what is added).
//
// While no request of ours exists, every call is passed to the MPI unchanged.
#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "mpiio/access/request.h"
#include "mpiio/comm/progress.h"
#include "mpiio/entry/entry.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

using Requests = std::vector<MPI_Request>;

Requests copy_of(int count, const MPI_Request* requests) {
  return count > 0 ? Requests(requests, requests + count) : Requests{};
}

std::span<const MPI_Request> span_of(int count, const MPI_Request* requests) {
  return count > 0 ? std::span(requests, static_cast<std::size_t>(count))
                   : std::span<const MPI_Request>{};
}

// Whether any request is not ours: only the MPI makes progress for those.
bool has_foreign(std::span<const MPI_Request> requests) {
  return std::ranges::any_of(requests, [](MPI_Request request) {
    return request != MPI_REQUEST_NULL && pending_of(request) == nullptr;
  });
}

// Does the work of our requests, or sleeps until it is over, because MPI's own waiting occupies a
// core. With requests of others it sleeps, and not for long: a large message may need many polls.
void finish_ours(std::span<const MPI_Request> requests) {
  constexpr std::chrono::microseconds with_foreign(300), without(2000);
  const bool is_foreign = has_foreign(requests);
  auto last_progress = Clock::now();
  for (const MPI_Request request : requests) {
    const auto pending = pending_of(request);
    if (pending == nullptr) continue;
    is_foreign ? pending->hurry() : pending->run_late();
    std::ignore = pending->wait(progress_mpi, is_foreign ? with_foreign : without);
    if (Clock::now() - last_progress < with_foreign) continue;
    progress_mpi();
    last_progress = Clock::now();
  }
  complete_finished(requests);
}

// To be called after a test. MPICH queries the status of each complete request, also if others are
// pending and it reports none; the call that completes a failed request reports its error.
void drop_failures_unless(int flag) {
  if (flag == 0) std::ignore = take_failures();
}

// Repeats a test of `requests`, with pauses, until it succeeds or fails.
template <class Test>
int test_until(std::span<const MPI_Request> requests, Test test) {
  Rest pause(Rest::Pace::prompt);
  while (true) {
    int flag = 0;
    complete_finished(requests);
    const int code = test(&flag);
    drop_failures_unless(flag);
    if (code != MPI_SUCCESS || flag != 0) return code;
    pause.rest();
  }
}

// An exception must not reach the program. Only memory can be missing here.
template <class Body>
int without_exceptions(Body body) {
  int code = MPI_SUCCESS;
  const Status status = caught([&]() -> Status {
    code = body();
    return {};
  });
  return status ? code : raise(MPI_FILE_NULL, status.error());
}

// The outcome of a call that completes at most one request.
int report_one(int code) {
  for (const RequestFailure& failure : take_failures()) code = raise(failure.file, failure.error);
  return code;
}

// The outcome of a call with a status for each of `completed`, the requests in the same order.
int report_each(int code, std::span<const MPI_Request> completed, MPI_Status* statuses) {
  const auto failed = take_failures();
  if (failed.empty()) return code;
  const bool wanted = statuses != MPI_STATUSES_IGNORE;
  for (std::size_t i = 0; wanted && code == MPI_SUCCESS && i < completed.size(); ++i)
    statuses[i].MPI_ERROR = MPI_SUCCESS;
  for (const RequestFailure& failure : failed) {
    const int error = raise(failure.file, failure.error);
    const auto at = std::ranges::find(completed, failure.request) - completed.begin();
    if (wanted && at < std::ssize(completed)) statuses[at].MPI_ERROR = error;
  }
  return MPI_ERR_IN_STATUS;
}

Requests picked(const Requests& requests, int count, const int* indices) {
  Requests chosen;
  for (int i = 0; i < count && count != MPI_UNDEFINED; ++i)
    chosen.push_back(requests[static_cast<std::size_t>(indices[i])]);
  return chosen;
}

}  // namespace
}  // namespace shima

using namespace shima;

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!any_ours({request, 1})) return SHIMA_REAL(Wait)(request, status);
  finish_ours({request, 1});
  return report_one(SHIMA_REAL(Wait)(request, status));
}
SHIMA_EXPORT(Wait);

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!any_ours({request, 1})) return SHIMA_REAL(Test)(request, flag, status);
  complete_finished({request, 1});
  return report_one(SHIMA_REAL(Test)(request, flag, status));
}
SHIMA_EXPORT(Test);

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (!any_requests()) return SHIMA_REAL(Request_get_status)(request, flag, status);
  complete_finished({&request, 1});
  return report_one(SHIMA_REAL(Request_get_status)(request, flag, status));
}
SHIMA_EXPORT(Request_get_status);

int MPI_Request_free(MPI_Request* request) {
  if (!any_requests()) return SHIMA_REAL(Request_free)(request);
  finish_ours({request, 1});
  const int code = SHIMA_REAL(Request_free)(request);
  std::ignore = take_failures();  // a freed request reports no error
  return code;
}
SHIMA_EXPORT(Request_free);

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!any_ours(span_of(count, requests))) return SHIMA_REAL(Waitall)(count, requests, statuses);
  return without_exceptions([&] {
    const Requests before = copy_of(count, requests);
    finish_ours(before);
    const auto test = [&](int* flag) {
      return SHIMA_REAL(Testall)(count, requests, flag, statuses);
    };
    return report_each(test_until(before, test), before, statuses);
  });
}
SHIMA_EXPORT(Waitall);

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!any_ours(span_of(count, requests)))
    return SHIMA_REAL(Testall)(count, requests, flag, statuses);
  return without_exceptions([&] {
    const Requests before = copy_of(count, requests);
    complete_finished(before);
    const int code = SHIMA_REAL(Testall)(count, requests, flag, statuses);
    drop_failures_unless(*flag);
    return report_each(code, before, statuses);
  });
}
SHIMA_EXPORT(Testall);

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!any_ours(span_of(count, requests)))
    return SHIMA_REAL(Waitany)(count, requests, index, status);
  return without_exceptions([&] {
    const Requests before = copy_of(count, requests);
    return report_one(test_until(before, [&](int* flag) {
      return SHIMA_REAL(Testany)(count, requests, index, flag, status);
    }));
  });
}
SHIMA_EXPORT(Waitany);

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (!any_ours(span_of(count, requests)))
    return SHIMA_REAL(Testany)(count, requests, index, flag, status);
  complete_finished(span_of(count, requests));
  const int code = SHIMA_REAL(Testany)(count, requests, index, flag, status);
  drop_failures_unless(*flag);
  return report_one(code);
}
SHIMA_EXPORT(Testany);

int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (!any_ours(span_of(count, requests)))
    return SHIMA_REAL(Waitsome)(count, requests, done, indices, statuses);
  return without_exceptions([&] {
    const Requests before = copy_of(count, requests);
    *done = 0;
    const int code = test_until(before, [&](int* flag) {
      const int result = SHIMA_REAL(Testsome)(count, requests, done, indices, statuses);
      *flag = *done != 0;  // also for MPI_UNDEFINED
      return result;
    });
    return report_each(code, picked(before, *done, indices), statuses);
  });
}
SHIMA_EXPORT(Waitsome);

int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (!any_ours(span_of(count, requests)))
    return SHIMA_REAL(Testsome)(count, requests, done, indices, statuses);
  return without_exceptions([&] {
    const Requests before = copy_of(count, requests);
    complete_finished(before);
    *done = 0;
    const int code = SHIMA_REAL(Testsome)(count, requests, done, indices, statuses);
    drop_failures_unless(*done);
    return report_each(code, picked(before, *done, indices), statuses);
  });
}
SHIMA_EXPORT(Testsome);

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
int MPI_Request_get_status_all(int count, const MPI_Request* requests, int* flag,
                               MPI_Status* statuses) {
  complete_finished(span_of(count, requests));
  const int code = SHIMA_REAL(Request_get_status_all)(count, requests, flag, statuses);
  drop_failures_unless(*flag);
  return report_each(code, span_of(count, requests), statuses);
}
SHIMA_EXPORT(Request_get_status_all);

int MPI_Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                               MPI_Status* status) {
  complete_finished(span_of(count, requests));
  const int code = SHIMA_REAL(Request_get_status_any)(count, requests, index, flag, status);
  drop_failures_unless(*flag);
  return report_one(code);
}
SHIMA_EXPORT(Request_get_status_any);

int MPI_Request_get_status_some(int count, const MPI_Request* requests, int* done, int* indices,
                                MPI_Status* statuses) {
  complete_finished(span_of(count, requests));
  *done = 0;
  const int code = SHIMA_REAL(Request_get_status_some)(count, requests, done, indices, statuses);
  return without_exceptions([&] {
    const Requests all = copy_of(count, requests);
    drop_failures_unless(*done);
    return report_each(code, picked(all, *done, indices), statuses);
  });
}
SHIMA_EXPORT(Request_get_status_some);
#endif
