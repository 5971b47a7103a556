#include "dsm/segment.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <new>

#include "base/log.h"

namespace shima::dsm {

Result<Segment> Segment::make(std::uint64_t size_bytes) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 46;
  if (size_bytes > most_bytes)
    return fail(Code::no_memory, fmt::format("donating {} bytes: a task can donate at most {}",
                                             size_bytes, most_bytes));
  Segment made;
  SHIMA_TRY_ASSIGN(made.buffer_,
                   SharedBuffer::make(SegmentView::total_bytes(size_bytes), "shima-dsm"));
  made.view_ = SegmentView(made.buffer_.bytes().data(), size_bytes);
  auto* const head = new (made.buffer_.bytes().data()) SegmentView::Head;
  if (::getrandom(&head->nonce, sizeof head->nonce, 0) != sizeof head->nonce)
    return fail_errno(errno, "creating a nonce");
  return made;
}

SegmentRef Segment::ref() const {
  return {view_.size_bytes(), reinterpret_cast<std::uint64_t>(view_.data()), view_.head().nonce,
          buffer_.ref()};
}

Mapping map_segment(const SegmentRef& ref) {
  if (ref.buffer.len_bytes != SegmentView::total_bytes(ref.size_bytes)) return {};
  auto mapped = map_shared(ref.buffer);
  if (!mapped) {
    log(LogLevel::info, "dsm: messages are used, not shared memory: {}", describe(mapped.error()));
    return {};
  }
  const SegmentView view(mapped->bytes().data(), ref.size_bytes);
  return view.head().nonce == ref.nonce ? *std::move(mapped) : Mapping();
}

}  // namespace shima::dsm
