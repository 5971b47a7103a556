#include "collective/guest_pieces.h"

#include <algorithm>

namespace shima {
namespace {

constexpr std::uint64_t large_piece_bytes = 4096;

}  // namespace

bool GuestPieces::are_large(const GuestMessage& message) {
  std::uint64_t count = 0;
  std::ignore = message.runs.for_each_run(0, [&](TargetRange) -> Status {
    ++count;
    return {};
  });
  return message.data.size() >= large_piece_bytes * count;
}

Status GuestPieces::add(GuestMessage message) {
  if (message.runs.len_bytes() != message.data.size())
    return fail(Code::internal, "a window's message of another node: other bytes than its runs");
  // The buffer keeps its place when the message is moved. It has no other owner.
  auto* data = const_cast<std::byte*>(message.data.data());
  SHIMA_TRY(message.runs.for_each_run(0, [&](TargetRange run) -> Status {
    pieces_.push_back({run, data});
    data += run.len_bytes();
    return {};
  }));
  messages_.push_back(std::move(message));
  return {};
}

void GuestPieces::clear() {
  messages_.clear();
  pieces_.clear();
}

bool GuestPieces::arrange() {
  const auto begin = [](const Piece& piece) { return piece.range.begin; };
  std::ranges::sort(pieces_, {}, begin);
  return std::ranges::adjacent_find(pieces_, [](const Piece& a, const Piece& b) {
           return b.range.begin < a.range.end;
         }) == pieces_.end();
}

Status GuestPieces::for_each_run(
    FunctionRef<Status(TargetOffset, std::span<const iovec>)> visit) const {
  std::vector<iovec> run;
  for (std::size_t i = 0; i < pieces_.size();) {
    const TargetOffset begin = pieces_[i].range.begin;
    TargetOffset end = begin;
    run.clear();
    for (; i < pieces_.size() && pieces_[i].range.begin == end; ++i) {
      run.push_back({pieces_[i].data, pieces_[i].range.len_bytes()});
      end = pieces_[i].range.end;
    }
    SHIMA_TRY(visit(begin, run));
  }
  return {};
}

Status GuestPieces::unpack(TargetRange window, std::byte* image) const {
  for (const GuestMessage& message : messages_)
    SHIMA_TRY(unpack_runs(message.runs, window.end, message.data, image));
  return {};
}

}  // namespace shima
