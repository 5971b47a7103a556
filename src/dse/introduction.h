// How a daemon finds `shima dse run`, and how both prove that they have the key of the job.
//
// `run` writes an introduction, a line, to the standard input of the daemon, by whatever starts it:
// the number of the host, where `run` listens, and the key, which is made for this job. So the key
// is in no arguments and no file. PRRTE does not pass the standard input on to all hosts; it passes
// on a variable, over its own connections, which the tasks do not inherit.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/key_proof.h"
#include "net/wire.h"

namespace shima::dse {

struct Introduction {
  int number = -1;       // of the host; -1: one launcher starts all daemons
  ServiceAddress place;  // its two secrets are the key, and are never sent to it
};

[[nodiscard]] std::string describe(const Introduction& introduction);
[[nodiscard]] Result<Introduction> parse_introduction(std::string_view line);
inline constexpr const char* introduction_variable = "SHIMA_DSE_INTRODUCTION";
// From the variable, or else from a descriptor, up to the end of the line.
[[nodiscard]] Result<Introduction> read_introduction(int fd);

[[nodiscard]] Status make_key(ServiceAddress& place);
[[nodiscard]] Key key_of(const ServiceAddress& place);

// For a daemon: a connection to `run`; both have proved the key.
[[nodiscard]] Result<UniqueFd> connect_to_run(const Introduction& introduction);

}  // namespace shima::dse
