// Extended attributes: passed through for plain files and directories. A striped file has none,
// because a master file loses its own when it is replaced.
#include <sys/xattr.h>

#include <vector>

#include "fuse/calls/mount.h"

namespace shima::fuse {
namespace {

// Calls get(path, buffer, size) and replies with a size or the bytes, as the kernel asked.
template <class Get>
void reply_bytes(fuse_req_t request, fuse_ino_t number, std::size_t room, Get get) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    if (node->kind != Node::Kind::plain) return refusal(EOPNOTSUPP);
    std::vector<char> value(room);
    const ssize_t n = get(node->path().c_str(), value.data(), room);
    SHIMA_TRY(done(static_cast<int>(n)));
    if (room == 0) {
      fuse_reply_xattr(request, static_cast<std::size_t>(n));
    } else {
      fuse_reply_buf(request, value.data(), static_cast<std::size_t>(n));
    }
    return {};
  });
}

void get(fuse_req_t request, fuse_ino_t number, const char* name, std::size_t room) {
  reply_bytes(request, number, room, [&](const char* path, char* value, std::size_t size) {
    return ::getxattr(path, name, value, size);
  });
}

void list(fuse_req_t request, fuse_ino_t number, std::size_t room) {
  reply_bytes(request, number, room, [](const char* path, char* value, std::size_t size) {
    return ::listxattr(path, value, size);
  });
}

void set(fuse_req_t request, fuse_ino_t number, const char* name, const char* value,
         std::size_t len_bytes, int flags) {
  answer_done(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    if (node->kind != Node::Kind::plain) return refusal(EOPNOTSUPP);
    return done(::setxattr(node->path().c_str(), name, value, len_bytes, flags));
  });
}

void remove(fuse_req_t request, fuse_ino_t number, const char* name) {
  answer_done(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    if (node->kind != Node::Kind::plain) return refusal(EOPNOTSUPP);
    return done(::removexattr(node->path().c_str(), name));
  });
}

}  // namespace

void add_xattr_calls(fuse_lowlevel_ops& calls) {
  calls.getxattr = get;
  calls.listxattr = list;
  calls.setxattr = set;
  calls.removexattr = remove;
}

}  // namespace shima::fuse
