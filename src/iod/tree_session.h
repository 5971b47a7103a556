// The part of a session that serves files by path: the directories of master files.
//
// Each request is resolved below its directory (beneath.h) and executed by the local
// implementation of FileTree. A session has at most one lock of a directory, which ends with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "iod/buffer.h"
#include "iod/path/beneath.h"
#include "store/remote/message.h"
#include "store/subfile/file_tree.h"

namespace shima::iod {

// SubfileOpen::portion_bytes. Shorter than for a program's own writes: a node's clients write long
// and short to the same files.
inline constexpr std::uint64_t portion_bytes = std::uint64_t{128} << 10;

class TreeSession {
 public:
  // Whether the request is one of these.
  [[nodiscard]] static bool serves(remote::Op op);

  // `directory`: that of the request, on this machine. As Session::execute.
  [[nodiscard]] Result<std::int64_t> execute(const remote::Request& request,
                                             const std::string& directory, Buffer& data);
  // Op::open_path.
  [[nodiscard]] static Result<std::unique_ptr<Subfile>> open(const remote::Request& request,
                                                             const std::string& directory,
                                                             remote::Facts& facts);
  // The directory .shima beside the file `name` in `below`, which is a path in `directory`. To make
  // or to fill one, the name is needed: the file's owner may have made it.
  [[nodiscard]] static Result<std::shared_ptr<TargetFiles>> files_beside(
      const std::string& directory, const std::string& below, const std::string& name,
      FileTree::BesideFiles how);
  void end_lock() { hold_.reset(); }

 private:
  [[nodiscard]] Result<std::int64_t> look(const remote::Request& request, const Beneath& beneath,
                                          Buffer& data);
  [[nodiscard]] Result<std::int64_t> change(const remote::Request& request, const PathBeneath& name,
                                            const Beneath& beneath, Buffer& data);
  [[nodiscard]] Result<std::int64_t> lock(const remote::Request& request, const PathBeneath& name);

  std::unique_ptr<DirectoryHold> hold_;
};

}  // namespace shima::iod
