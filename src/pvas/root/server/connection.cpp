#include "pvas/root/server/connection.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shima::pvas {
namespace {

constexpr std::size_t largest_order = std::size_t{64} << 20;

Message with_text(Word word, int value, int other, const std::string& text) {
  Message message;
  message.word = word;
  message.value = value;
  message.other = other;
  message.text = {};
  std::memcpy(message.text.data(), text.data(), std::min(text.size(), message.text.size() - 1));
  return message;
}

bool would_block(const Error& error) { return error.sys_errno == EAGAIN; }

}  // namespace

Result<std::optional<Received>> Connection::hear() const {
  auto received = receive_message(socket_.get());
  if (received) return std::optional(*std::move(received));
  if (would_block(received.error())) return std::nullopt;
  return std::unexpected(std::move(received).error());
}

void Connection::tell(Word word, int value, int other, const std::string& text) {
  if (owed_) return;
  const Message message = with_text(word, value, other, text);
  const Status sent = send_message(socket_.get(), message);
  const bool can_be_missed = word == Word::stopped || word == Word::continued;
  if (!sent && would_block(sent.error()) && !can_be_missed) owed_ = message;
}

void Connection::pay() {
  if (!owed_) return;
  const Status sent = send_message(socket_.get(), *owed_);
  if (sent || !would_block(sent.error())) owed_.reset();
}

void Connection::refuse(const Error& error) {
  tell(Word::refused, static_cast<int>(error.code), error.sys_errno, error.what);
}

Status Connection::begin_order(Received& received) {
  if (received.files.size() != 2 || order_ || task)
    return fail(Code::bad_argument, "a spawn order at the wrong time");
  order_ = std::move(received.files[0]);
  directory_ = std::move(received.files[1]);
  files_expected_ = static_cast<std::size_t>(received.message.value);
  return {};
}

Status Connection::add_files(Received& received) {
  if (!order_ || files_.size() + received.files.size() > files_expected_)
    return fail(Code::bad_argument, "more files than the spawn order announced");
  for (std::size_t i = 0; i < received.files.size(); ++i)
    files_.push_back({std::move(received.files[i]), received.message.numbers[i]});
  return {};
}

Result<SpawnOrder> Connection::read_order() const {
  struct stat info{};
  if (::fstat(order_.get(), &info) != 0)
    return fail_errno(errno, "reading the size of a spawn order");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (info.st_size <= 0 || size > largest_order)
    return fail(Code::bad_argument, "a spawn order that is empty or too large");
  std::string bytes(size, '\0');
  if (::pread(order_.get(), bytes.data(), size, 0) != info.st_size)
    return fail_errno(errno, "reading a spawn order");
  return decode_order(bytes);
}

void Connection::drop_order() {
  files_.clear();
  order_ = UniqueFd();
  directory_ = UniqueFd();
}

}  // namespace shima::pvas
