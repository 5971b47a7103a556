// The files of a target: everything that Shima does with a target goes through this interface,
// wherever the target is.
//
// A file is named by its name in the target, never by a path. Links are not followed. An error
// names the file and has the errno of the failed call.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/subfile/far_request.h"
#include "store/subfile/subfile.h"

namespace shima {

// While it lives, another process that opens the file for writing waits for a while.
class WriterLease {
 public:
  virtual ~WriterLease() = default;
  // Whether no process has opened the file for writing meanwhile.
  [[nodiscard]] virtual Result<bool> holds() = 0;
  [[nodiscard]] virtual Result<struct stat> facts() = 0;
};

// Of the last read and the last change, as in utimensat(2).
using FileTimes = std::array<timespec, 2>;

class TargetFiles {
 public:
  struct Text {
    std::string text;
    uid_t owner = 0;  // of the file
  };
  enum class Sole { no, yes };
  struct Step;
  struct StepResult;

  virtual ~TargetFiles() = default;

  // The descriptor of a directory on this machine; -1 for a target on another one.
  [[nodiscard]] virtual int directory_fd() const = 0;

  [[nodiscard]] virtual Result<struct stat> examine(const std::string& name) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> names() = 0;
  // Reads at most `most_bytes`.
  [[nodiscard]] virtual Result<Text> read_text(const std::string& name, std::size_t most_bytes) = 0;
  // Whole or not at all (see write_whole); `mode`: of a new file, before the umask.
  [[nodiscard]] virtual Status write_text(const std::string& name, std::string_view text,
                                          mode_t mode) = 0;
  // Creates an empty file, which must not exist. The mode is before the umask.
  [[nodiscard]] virtual Status make(const std::string& name, mode_t mode) = 0;
  [[nodiscard]] virtual Status truncate(const std::string& name, std::uint64_t size_bytes) = 0;
  [[nodiscard]] virtual Status remove(const std::string& name) = 0;
  // A second name of the file, which is the same in another target.
  [[nodiscard]] virtual Status link_into(TargetFiles& there, const std::string& name) = 0;
  [[nodiscard]] virtual Status set_mode(const std::string& name, mode_t mode) = 0;
  [[nodiscard]] virtual Status set_times(const std::string& name, const FileTimes& times) = 0;
  // Gives a file that this process has just created the owner and permissions of `like`, as far as
  // possible.
  [[nodiscard]] virtual Status give_new(const std::string& name, const struct stat& like) = 0;
  // Whether a process is writing this draft.
  [[nodiscard]] virtual bool is_being_written(const std::string& name) = 0;
  // The names survive a machine failure from then on.
  [[nodiscard]] virtual Status sync() = 0;
  // The path in the request is not used.
  [[nodiscard]] virtual Result<std::unique_ptr<Subfile>> open(const std::string& name,
                                                              const SubfileOpen& request) = 0;
  // Of files on another machine, several may be asked at once: these begin an operation. Null: not
  // such files. The texts in the steps must live until the end of the request.
  [[nodiscard]] virtual std::unique_ptr<FarAnswer<std::vector<StepResult>>> begin(
      std::span<const Step> steps);
  [[nodiscard]] virtual std::unique_ptr<FarAnswer<std::unique_ptr<Subfile>>> begin_open(
      const std::string& name, const SubfileOpen& request);
  // file_in_use if a process has the file open for writing, or, with Sole::yes, if another one asks
  // for such a lease; unsupported_operation where a writer would not be noticed.
  [[nodiscard]] virtual Result<std::unique_ptr<WriterLease>> lease(const std::string& name,
                                                                   Sole sole) = 0;
};

// One of several steps that are taken in order. If a step that changes something fails, the steps
// after it are not taken: their outcome is `cancelled`.
struct TargetFiles::Step {
  enum class Kind : std::uint8_t {
    // Asks an I/O node for the target, before steps on its files. `name`: of the file that it is
    // beside,
    // if any.
    attach,
    examine,
    read_text,  // at most `bytes`
    write_text,
    make,
    set_size,  // `bytes`
    remove,    // a file that does not exist is no error
  };
  Kind kind = Kind::examine;
  std::string name = {};
  std::string_view text = {};
  mode_t mode = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool only_looks() const { return kind == Kind::examine || kind == Kind::read_text; }
};

struct TargetFiles::StepResult {
  Status done;
  struct stat facts{};  // by examine
  Text text;            // by read_text
};

inline std::unique_ptr<FarAnswer<std::vector<TargetFiles::StepResult>>> TargetFiles::begin(
    std::span<const Step> /*steps*/) {
  return nullptr;
}
inline std::unique_ptr<FarAnswer<std::unique_ptr<Subfile>>> TargetFiles::begin_open(
    const std::string& /*name*/, const SubfileOpen& /*request*/) {
  return nullptr;
}

}  // namespace shima
