// Codes of errors and their texts.
#include <array>
#include <cstring>

#include "base/thread_object.h"
#include "capi/lapi/contexts.h"
#include "capi/last_message.h"

namespace shima::capi {
namespace {

struct LastError {
  int code = LAPI_SUCCESS;
  LastMessage message{};
};

struct Text {
  int code;
  const char* text;
};

constexpr std::array texts{
    Text{LAPI_SUCCESS, "success"},
    Text{LAPI_ERR_UNKNOWN, "internal error"},
    Text{LAPI_ERR_TASK_LOST, "a task of the job has ended, or cannot be reached"},
    Text{LAPI_ERR_TIMEOUT, "timed out"},
    Text{LAPI_ERR_HNDL_INVALID, "the handle is not one that LAPI_Init has stored"},
    Text{LAPI_ERR_ALL_HNDL_IN_USE, "LAPI_Init has been called too often"},
    Text{LAPI_ERR_INFO_NULL, "lapi_info is NULL"},
    Text{LAPI_ERR_INFO_NONZERO_INFO, "lapi_info is not zero where it has to be"},
    Text{LAPI_ERR_MEMORY_EXHAUSTED, "out of memory"},
    Text{LAPI_ERR_NOT_STARTED, "not a task of a job: start it with shima run --lapi"},
    Text{LAPI_ERR_SHM_SETUP, "the shared memory of the job cannot be used"},
    Text{LAPI_ERR_BAD_PARAMETER, "a bad argument"},
    Text{LAPI_ERR_IN_HANDLER, "a header handler may not wait, no handler may call LAPI_Term"},
    Text{LAPI_ERR_TGT, "there is no such task"},
    Text{LAPI_ERR_DATA_LEN, "the length exceeds LAPI_MAX_MSG_SZ"},
    Text{LAPI_ERR_ORG_ADDR_NULL, "the origin address is NULL, and the length is not 0"},
    Text{LAPI_ERR_TGT_ADDR_NULL, "the target address is NULL, and the length is not 0"},
    Text{LAPI_ERR_HDR_HNDLR_NULL, "the header handler is NULL"},
    Text{LAPI_ERR_HDR_HNDLR, "there is no such header handler"},
    Text{LAPI_ERR_UHDR_LEN, "the user header is longer than MAX_UHDR_SZ"},
    Text{LAPI_ERR_UHDR_NULL, "the user header is NULL, and its length is not 0"},
    Text{LAPI_ERR_CNTR_NULL, "the counter is NULL"},
    Text{LAPI_ERR_CNTR_VAL, "the value of a counter to wait for is not positive"},
    Text{LAPI_ERR_RMW_OP, "no such operation"},
    Text{LAPI_ERR_IN_VAL_NULL, "the input value is NULL"},
    Text{LAPI_ERR_TGT_VAR_NULL, "the target variable is NULL"},
    Text{LAPI_ERR_OP_SZ, "the size of the variable is not 32 or 64 bits"},
    Text{LAPI_ERR_QUERY_TYPE, "no such query, or the value cannot be set"},
    Text{LAPI_ERR_SET_VAL, "the value is out of range"},
    Text{LAPI_ERR_RET_PTR_NULL, "the pointer for the result is NULL"},
    Text{LAPI_ERR_ADDR_HNDL_RANGE, "the index is not between 1 and LOC_ADDRTBL_SZ - 1"},
    Text{LAPI_ERR_ADDR_TBL_NULL, "the table for addresses is NULL"},
    Text{LAPI_ERR_MSG_INFO_NULL, "the message information is NULL"},
    Text{LAPI_ERR_XFER_CMD, "no such transfer"},
    Text{LAPI_ERR_UTIL_CMD, "no such utility command"},
    Text{LAPI_ERR_CODE_UNKNOWN, "no such code"},
    Text{LAPI_ERR_ORG_VEC_NULL, "the origin vector, its info or its len is NULL"},
    Text{LAPI_ERR_TGT_VEC_NULL, "the target vector, its info or its len is NULL"},
    Text{LAPI_ERR_ORG_VEC_TYPE, "the type of the origin vector is unknown"},
    Text{LAPI_ERR_TGT_VEC_TYPE, "the type of the target vector is unknown"},
    Text{LAPI_ERR_VEC_TYPE_DIFF, "the vectors differ in type"},
    Text{LAPI_ERR_VEC_NUM_DIFF, "the vectors differ in the number of pieces"},
    Text{LAPI_ERR_VEC_LEN_DIFF, "a piece is longer than the one of the other vector"},
    Text{LAPI_ERR_ORG_VEC_LEN, "the origin vector is longer than LAPI_MAX_MSG_SZ"},
    Text{LAPI_ERR_TGT_VEC_LEN, "the target vector is longer than LAPI_MAX_MSG_SZ"},
    Text{LAPI_ERR_ORG_VEC_ADDR, "a piece of the origin vector is at NULL, and not empty"},
    Text{LAPI_ERR_TGT_VEC_ADDR, "a piece of the target vector is at NULL, and not empty"},
    Text{LAPI_ERR_ORG_STRIDE, "the stride of the origin vector is less than its block"},
    Text{LAPI_ERR_TGT_STRIDE, "the stride of the target vector is less than its block"},
    Text{LAPI_ERR_ORG_EXTENT, "the origin vector ends beyond the address space"},
    Text{LAPI_ERR_TGT_EXTENT, "the target vector ends beyond the address space"},
    Text{LAPI_ERR_STRIDE_ORG_ADDR_NULL, "the address of the strided origin is NULL"},
    Text{LAPI_ERR_STRIDE_TGT_ADDR_NULL, "the address of the strided target is NULL"},
};

int code_of(Code code) {
  switch (code) {
    case Code::peer_lost:
      return LAPI_ERR_TASK_LOST;
    case Code::timed_out:
      return LAPI_ERR_TIMEOUT;
    case Code::no_memory:
    case Code::no_space:
      return LAPI_ERR_MEMORY_EXHAUSTED;
    case Code::unsupported_operation:
      return LAPI_ERR_IN_HANDLER;
    case Code::bad_handle:
    case Code::not_same:
      return LAPI_ERR_NOT_STARTED;
    case Code::bad_argument:
      return LAPI_ERR_BAD_PARAMETER;
    default:
      return LAPI_ERR_UNKNOWN;
  }
}

}  // namespace

LapiError translate(const Error& error) { return {code_of(error.code), describe(error)}; }

int report_lapi(const LapiError& error) noexcept {
  if (auto* const last = thread_object<LastError>()) {
    std::strncpy(last->message.data(), error.what.c_str(), last->message.size() - 1);
    last->code = error.code;
  }
  return error.code;
}

int report_lapi(const Error& error) noexcept {
  const int code = code_of(error.code);
  if (auto* const last = thread_object<LastError>()) {
    remember(last->message, error);
    last->code = code;
  }
  return code;
}

const char* text_of_lapi(int code) noexcept {
  const auto* const last = thread_object<LastError>();
  if (last != nullptr && code != LAPI_SUCCESS && code == last->code && last->message[0] != '\0')
    return last->message.data();
  for (const Text& known : texts)
    if (known.code == code) return known.text;
  return nullptr;
}

}  // namespace shima::capi
