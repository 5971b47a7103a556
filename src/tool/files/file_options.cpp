#include "tool/files/file_options.h"

#include <memory>

#include "store/target/paths.h"
#include "tool/files/file_commands.h"

namespace shima::tool {
namespace {

void add_stripe_options(CLI::App& command, StripeOptions& stripe) {
  command
      .add_option("--stripe", stripe.stripe,
                  "Layout: unit=SIZE,targets=NUMBER; each may be omitted")
      ->type_name("STRIPE");
  command.add_option("--order", stripe.order, "The targets to use, in order: NAME,NAME")
      ->type_name("NAMES");
  command
      .add_option("--region", stripe.regions,
                  "The layout from an offset on: BEGIN:UNIT:TARGETS; may be repeated")
      ->type_name("REGION")
      ->allow_extra_args(false);
}

// See SHIMA_PATHS.
std::string meant_by(const std::string& name) {
  const auto path = path_meant_by(name);
  if (!path) throw CLI::ValidationError(path.error().what);
  return *path;
}

CLI::Option* add_paths(CLI::App& command, Paths& paths, const char* name, const char* help) {
  return command.add_option(name, paths, help)->transform(meant_by);
}

// Options live as long as their command.
template <class Options>
CLI::App& add_command(CLI::App& app, Action& chosen, const char* name, const char* help,
                      void (*describe)(CLI::App&, Options&), Outcome<int> (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand(name, help);
  describe(command, *options);
  command.footer(app.get_footer());
  command.callback([&chosen, options, run] { chosen = [options, run] { return run(*options); }; });
  return command;
}

struct ListOptions {
  bool flag = false;
  Paths paths;
};

void describe_create(CLI::App& command, CreateOptions& options) {
  add_stripe_options(command, options.stripe);
  auto* directory =
      command.add_option("--default", options.directory_default,
                         "Instead: set how files created in this directory are striped");
  directory->type_name("DIRECTORY")->transform(meant_by);
  auto* files = add_paths(command, options.files, "file", "The files to create");
  files->excludes(directory);
}

void describe_copy(CLI::App& command, CopyOptions& options) {
  add_stripe_options(command, options.stripe);
  command.add_flag("--plain", options.plain, "Make plain files, whatever the directory's default");
  add_paths(command, options.paths, "path", "The files to copy, and last the destination")
      ->required();
}

void describe_restripe(CLI::App& command, RestripeOptions& options) {
  add_stripe_options(command, options.stripe);
  command.add_flag("--abandon", options.abandon, "Discard an unfinished restripe");
  add_paths(command, options.files, "file", "The files")->required();
}

void describe_check(CLI::App& command, CheckOptions& options) {
  command.add_flag("--repair", options.repair, "Repair what can be repaired without guessing");
  command.add_flag("--remove-orphans", options.remove_orphans,
                   "Remove parts of files that do not exist");
  command.add_flag("--json", options.as_json, "Print as JSON");
  add_paths(command, options.paths, "path", "Files, or directories with their contents")
      ->required();
}

void describe_json_list(CLI::App& command, ListOptions& options) {
  command.add_flag("--json", options.flag, "Print as JSON");
  add_paths(command, options.paths, "path", "Files or directories");
}

void describe_remove(CLI::App& command, RemoveOptions& options) {
  command.add_flag("-f,--force", options.force, "Ignore files that do not exist");
  command.add_flag("-r,--recursive", options.recursive, "Remove directories with their contents");
  add_paths(command, options.files, "file", "The files")->required();
}

void describe_paths(CLI::App& command, ListOptions& options) {
  add_paths(command, options.paths, "path", "Files; for mv, last the destination")->required();
}

}  // namespace

void add_file_commands(CLI::App& app, Action& chosen) {
  using Run = Outcome<int> (*)(const ListOptions&);
  const Run stat = [](const ListOptions& o) { return describe_files(o.paths, o.flag); };
  const Run list = [](const ListOptions& o) { return list_files(o.paths, o.flag); };
  const Run print = [](const ListOptions& o) { return print_files(o.paths); };
  const Run move = [](const ListOptions& o) { return move_files(o.paths); };
  add_command(app, chosen, "create", "Create striped files", describe_create, create_files);
  add_command(app, chosen, "stat", "Show how files are striped", describe_json_list, stat);
  add_command(app, chosen, "ls", "List files with their sizes", describe_json_list, list);
  add_command(app, chosen, "cp", "Copy files, striped or plain", describe_copy, copy_files);
  add_command(app, chosen, "cat", "Write files to the standard output", describe_paths, print);
  add_command(app, chosen, "rm", "Remove files with their subfiles", describe_remove, remove_files);
  add_command(app, chosen, "mv", "Rename files", describe_paths, move);
  add_command(app, chosen, "restripe", "Change how files are striped", describe_restripe,
              restripe_files);
  add_command(app, chosen, "fsck", "Find and repair problems of striped files", describe_check,
              static_cast<Outcome<int> (*)(const CheckOptions&)>(check_files));
}

}  // namespace shima::tool
