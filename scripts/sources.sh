# Sourced by check and format: the source files of this repository, tracked or to be added.

# list_sources SUFFIX...: e.g. list_sources h cpp c
list_sources() {
  local suffix patterns=()
  for suffix in "$@"; do patterns+=("*.$suffix"); done
  git ls-files --cached --others --exclude-standard -- "${patterns[@]}" | while read -r file; do
    [ -e "$file" ] && echo "$file"
  done
}

# list_shell_scripts: all files with a shell's #! line.
list_shell_scripts() {
  git ls-files --cached --others --exclude-standard | while read -r file; do
    [ -f "$file" ] && head -c 30 "$file" | head -n 1 | grep -aqE '^#!.*\b(ba)?sh\b' && echo "$file"
  done || true
}
