#include "tool/trace/call_sites.h"

#include <elf.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tool/common/process.h"

namespace shima::tool {
namespace {

// A program at fixed addresses is named by those.
bool has_fixed_addresses(const std::string& module) {
  Elf64_Ehdr header{};
  std::ifstream file(module, std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return file.good() && header.e_type == ET_EXEC;
}

using Texts = std::map<std::uint64_t, std::string>;

// The address behind a call may be in the next line, so the one before it is looked up.
Texts ask_for(const std::string& module, const std::set<std::uint64_t>& addresses) {
  Command command{"addr2line", "-f", "-C", "-e", module};
  for (const std::uint64_t address : addresses)
    command.push_back(fmt::format("{:#x}", address - 1));
  std::istringstream answer(ask(command, {"DEBUGINFOD_URLS="}).output);
  Texts texts;
  for (const std::uint64_t address : addresses) {
    std::string function, place;
    if (!std::getline(answer, function) || !std::getline(answer, place)) break;
    texts[address] = site_text(function, place);
  }
  return texts;
}

}  // namespace

std::string site_text(const std::string& function, const std::string& place) {
  const bool knows_function = !function.empty() && function != "??";
  std::string line = place.substr(0, place.find(" ("));  // "(discriminator 2)"
  if (const auto slash = line.rfind('/'); slash != std::string::npos) line.erase(0, slash + 1);
  const bool knows_line =
      !line.empty() && !line.starts_with("??") && !line.ends_with(":?") && !line.ends_with(":0");
  if (knows_line && knows_function) return fmt::format("{} in {}", line, function);
  if (knows_line) return line;
  return knows_function ? function : std::string();
}

void name_call_sites(TraceSet& set) {
  std::map<std::string, std::set<std::uint64_t>> wanted;
  std::map<std::string, bool> fixed;
  const auto address_of = [&](const CallSite& site) {
    const auto [known, is_new] = fixed.try_emplace(site.module, false);
    if (is_new) known->second = has_fixed_addresses(site.module);
    return known->second ? site.address : site.offset;
  };
  for (const ProcessTrace& process : set.processes)
    for (const CallSite& site : process.sites)
      if (site.address != 0 && site.module.starts_with('/'))
        wanted[site.module].insert(address_of(site));
  if (!find_program("addr2line")) return;
  std::map<std::string, Texts> known;
  for (const auto& [module, addresses] : wanted) known[module] = ask_for(module, addresses);
  for (ProcessTrace& process : set.processes)
    for (CallSite& site : process.sites) {
      if (site.address == 0 || !known.contains(site.module)) continue;
      const std::string& text = known[site.module][address_of(site)];
      if (!text.empty()) site.text = text;
    }
}

}  // namespace shima::tool
