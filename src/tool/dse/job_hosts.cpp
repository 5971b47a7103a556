#include "tool/dse/job_hosts.h"

#include <fmt/format.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/file_text.h"
#include "net/job_network.h"
#include "tool/common/print_failure.h"
#include "tool/common/process.h"

namespace shima::tool {
namespace {

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool same_address(const sockaddr* one, const SocketAddress& other) {
  if (one->sa_family != other.sin6_family) return false;
  if (one->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr, &other.sin6_addr,
                     sizeof other.sin6_addr) == 0;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return address->sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
}

Outcome<std::vector<dse::Host>> read_hosts(const std::string& path) {
  const auto text = file_text(path);
  if (!text)
    return refuse("-f " + path,
                  fmt::format("cannot be read ({})", std::strerror(text.error().sys_errno)),
                  "give a file with a line HOST [slots=N] for each host");
  auto hosts = dse::parse_hosts(*text, path);
  if (!hosts) return std::unexpected(failure_of("shima dse run", hosts.error()));
  return *std::move(hosts);
}

// The hosts of the allocation; each gives as many slots as it has cores.
Outcome<std::vector<dse::Host>> slurm_hosts() {
  const std::string nodes = environment_value("SLURM_JOB_NODELIST");
  const Answer answer = ask({"scontrol", "show", "hostnames", nodes});
  auto hosts = dse::parse_hosts(answer.output, "scontrol show hostnames");
  if (answer.status != 0 || !hosts)
    return refuse("SLURM_JOB_NODELIST=" + nodes, "scontrol does not say which hosts these are",
                  "give a hosts file by -f");
  return *std::move(hosts);
}

}  // namespace

bool is_in_slurm() {
  return !environment_value("SLURM_JOB_ID").empty() &&
         !environment_value("SLURM_JOB_NODELIST").empty() && find_program("srun").has_value();
}

bool is_this_host(const std::string& name) {
  if (name == "localhost" || name == own_name()) return true;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  const auto own = own_addresses();
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    if (is_loopback(one->ai_addr) || std::ranges::any_of(own, [&](const OwnAddress& mine) {
          return same_address(one->ai_addr, mine.address);
        }))
      return true;
  return false;
}

Outcome<JobHosts> find_hosts(const DseOptions& options) {
  const bool by_slurm = options.hosts_file.empty() && options.launcher != "ssh" && is_in_slurm();
  if (options.hosts_file.empty() && !by_slurm) return JobHosts{{{own_name(), 0}}, true};
  auto hosts = by_slurm ? slurm_hosts() : read_hosts(options.hosts_file);
  if (!hosts) return std::unexpected(hosts.error());
  const auto here = [](const dse::Host& host) { return is_this_host(host.name); };
  if (std::ranges::count_if(*hosts, here) > 1)
    return refuse("-f " + options.hosts_file, "several lines mean this host",
                  "write one line for it, with all its slots");
  return JobHosts{*std::move(hosts), false};
}

}  // namespace shima::tool
