// Lists of hosts: names separated by commas, with ranges as Slurm writes them: "n[08-10,12],login".
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shima {

// The names, without duplicates, in their order; at most `most`. A list that is not of this form,
// and a name that no host can have, end the list.
[[nodiscard]] std::vector<std::string> expand_hosts(std::string_view list, std::size_t most);

// The beginning of the list that has at most so many bytes, cut between two entries.
[[nodiscard]] std::string_view first_hosts(std::string_view list, std::size_t most_bytes);

// Whether two names may be of one host: one of them may have no domain.
[[nodiscard]] bool are_same_host(std::string_view one, std::string_view other);

}  // namespace shima
