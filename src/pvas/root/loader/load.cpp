#include "pvas/root/loader/load.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "pvas/root/loader/placing.h"

namespace shima::pvas {
namespace {

constexpr std::string_view own_name = "/proc/self/exe";

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Maps the file's pages, then pages of zeros; clears the rest of the file's last page.
Status map_segment(int fd, const Segment& segment, std::uint64_t base, const std::string& name) {
  const std::uint64_t begin = page_down(base + segment.address);
  const std::uint64_t file_end = base + segment.address + segment.file_bytes;
  const std::uint64_t end = page_up(base + segment.address + segment.memory_bytes);
  const std::uint64_t file_pages = segment.file_bytes == 0 ? begin : page_up(file_end);
  if (file_pages > begin &&
      ::mmap(pointer(begin), file_pages - begin, segment.protection, MAP_PRIVATE | MAP_FIXED, fd,
             static_cast<off_t>(page_down(segment.offset))) == MAP_FAILED)
    return fail_errno(errno, "mapping " + name);
  const bool has_tail = segment.memory_bytes > segment.file_bytes && file_pages > file_end;
  if (has_tail && (segment.protection & PROT_WRITE) != 0)
    std::memset(pointer(file_end), 0, file_pages - file_end);
  if (end > file_pages && ::mmap(pointer(file_pages), end - file_pages, segment.protection,
                                 MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    return fail_errno(errno, "mapping " + name);
  return {};
}

// The new name is shorter; the rest of the old one is filled with zeros.
unsigned replace_origin(char* bytes, std::size_t size, int origin_fd) {
  const std::string other = "/dev/fd/" + std::to_string(origin_fd);
  unsigned found = 0;
  std::string_view rest(bytes, size);
  for (std::size_t at = rest.find(own_name); at != std::string_view::npos;
       at = rest.find(own_name, at + 1)) {
    std::memset(bytes + at, 0, own_name.size());
    other.copy(bytes + at, other.size());
    ++found;
  }
  return found;
}

Result<std::uint8_t*> make_island(std::uint64_t address) {
  SHIMA_TRY(map_pages(address, island_bytes, PROT_READ | PROT_WRITE));
  return static_cast<std::uint8_t*>(pointer(address));
}

struct Changes {
  const PrivateCopy& copy;
  std::uint8_t* island;
};

// Scans only bytes from the file, not the zeros after them.
Status change_segment(const Segment& segment, const Changes& changes, Loaded& loaded,
                      const std::string& name) {
  if (segment.file_bytes == 0) return {};
  const std::uint64_t begin = page_down(loaded.base + segment.address);
  const std::uint64_t end = loaded.base + segment.address + segment.file_bytes;
  const std::size_t size = end - begin;
  auto* bytes = static_cast<char*>(pointer(begin));
  const bool code = (segment.protection & PROT_EXEC) != 0;
  const bool names = std::string_view(bytes, size).contains(own_name);
  if (!code && !names) return {};
  if (::mprotect(bytes, page_up(size), PROT_READ | PROT_WRITE) != 0)
    return fail_errno(errno, "making " + name + " writable");
  loaded.origin_names += replace_origin(bytes, size, changes.copy.origin_fd);
  if (code)
    loaded.placed_calls += redirect_calls(reinterpret_cast<std::uint8_t*>(bytes), size,
                                          changes.island, changes.copy.area);
  if (::mprotect(bytes, page_up(size), segment.protection) != 0)
    return fail_errno(errno, "protecting " + name);
  return {};
}

Status change_image(const ElfImage& image, const PrivateCopy& copy, Loaded& loaded,
                    const std::string& name) {
  SHIMA_TRY_ASSIGN(std::uint8_t* const island, make_island(loaded.end));
  for (const Segment& segment : image.segments)
    SHIMA_TRY(change_segment(segment, {copy, island}, loaded, name));
  if (::mprotect(island, island_bytes, PROT_READ | PROT_EXEC) != 0)
    return fail_errno(errno, "patching the code of " + name);
  loaded.end += island_bytes;
  return {};
}

}  // namespace

Status map_pages(std::uint64_t address, std::uint64_t bytes, int protection) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const wanted = pointer(address);
  void* const got = ::mmap(wanted, bytes, protection, flags, -1, 0);
  if (got == MAP_FAILED) return fail_errno(errno, "mapping memory for a task");
  if (got == wanted) return {};
  ::munmap(got, bytes);
  return fail(Code::unsupported_operation,
              "this kernel does not map memory at a requested address");
}

Result<Loaded> load_image(int fd, const ElfImage& image, std::uint64_t where,
                          const PrivateCopy* copy, const std::string& name) {
  Loaded loaded;
  loaded.base = (where + image.align - 1) & ~(image.align - 1);
  loaded.end = loaded.base + image.span;
  SHIMA_TRY(map_pages(loaded.base, image.span, PROT_NONE));
  for (const Segment& segment : image.segments)
    SHIMA_TRY(map_segment(fd, segment, loaded.base, name));
  if (copy != nullptr) SHIMA_TRY(change_image(image, *copy, loaded, name));
  return loaded;
}

}  // namespace shima::pvas
