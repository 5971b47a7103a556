// The subcommands for files: each function is one subcommand and returns the exit code.
//
// Files of any kind are accepted; a striped one is processed with its subfiles. After an error a
// command continues with the other files.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"
#include "tool/files/stripe_options.h"

namespace shima::tool {

using Paths = std::vector<std::string>;

inline constexpr int exit_failed = 1;  // an operation failed
// For fsck, whose 1 means that all problems were repaired.
inline constexpr int exit_repaired = 1;
inline constexpr int exit_findings = 2;
inline constexpr int exit_unchecked = 3;

struct CreateOptions {
  StripeOptions stripe;
  std::string directory_default;  // set this default instead of creating files
  Paths files;
};
struct CopyOptions {
  StripeOptions stripe;
  bool plain = false;
  Paths paths;  // from..., to
};
struct RemoveOptions {
  bool force = false;
  bool recursive = false;
  Paths files;
};
struct RestripeOptions {
  StripeOptions stripe;
  bool abandon = false;
  Paths files;
};
struct CheckOptions {
  bool repair = false;
  bool remove_orphans = false;
  bool as_json = false;
  Paths paths;
};

[[nodiscard]] Outcome<int> create_files(const CreateOptions& options);
[[nodiscard]] Outcome<int> describe_files(const Paths& paths, bool as_json);  // stat
[[nodiscard]] Outcome<int> list_files(const Paths& paths, bool as_json);      // ls
[[nodiscard]] Outcome<int> copy_files(const CopyOptions& options);
[[nodiscard]] Outcome<int> print_files(const Paths& paths);             // cat
[[nodiscard]] Outcome<int> remove_files(const RemoveOptions& options);  // rm
[[nodiscard]] Outcome<int> move_files(const Paths& paths);
[[nodiscard]] Outcome<int> restripe_files(const RestripeOptions& options);
[[nodiscard]] Outcome<int> check_files(const CheckOptions& options);  // fsck

}  // namespace shima::tool
