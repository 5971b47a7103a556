#include "collective/guest_pieces.h"

#include <algorithm>

namespace shima {

Status GuestPieces::add(GuestMessage message) {
  SHIMA_TRY_ASSIGN(const auto runs, runs_in(message.runs, message.data));
  // The buffer keeps its place when the message is moved. It has no other owner.
  for (const RunBytes& run : runs) pieces_.push_back({run.range, const_cast<std::byte*>(run.data)});
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
