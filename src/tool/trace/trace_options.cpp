#include "tool/trace/trace_options.h"

#include <memory>

namespace shima::tool {

void add_trace_command(CLI::App& app, std::function<Outcome<int>()>& chosen) {
  const auto options = std::make_shared<TraceOptions>();
  CLI::App& command =
      *app.add_subcommand("trace", "Merge the traces of processes that ran with SHIMA_TRACE");
  command.add_option("DIR", options->directory, "The directory that SHIMA_TRACE named")->required();
  command.add_option("--out", options->trace, "The file for a Chrome trace")->type_name("FILE");
  command.add_option("--html", options->html, "The file for a page about all calls")
      ->type_name("FILE");
  command.require_option(2, 0);
  command.footer(app.get_footer());
  command.callback([options, &chosen] { chosen = [options] { return merge_traces(*options); }; });
}

}  // namespace shima::tool
