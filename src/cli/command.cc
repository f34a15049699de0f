#include "cli/command.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::cli {
namespace {

constexpr size_t kTextColumnMax = 34;

// Words of `text` in lines of at most `width`, every line after the first indented.
std::string Wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = 0;
  for (std::string_view word : Split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string FlagHead(const Flag& flag) {
  std::string head = flag.Short().empty() ? "    " : StrCat("-", flag.Short(), ", ");
  if (flag.Long().size() == 1) {
    head = StrCat("-", flag.Short());
  } else {
    head += StrCat("--", flag.Long());
  }
  if (!flag.value_name.empty()) {
    head +=
        flag.implied.empty() ? StrCat(" ", flag.value_name) : StrCat("[=", flag.value_name, "]");
  }
  return head;
}

// In columns, of which letters beyond ASCII have more bytes than columns.
size_t ColumnsOf(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string FlagsHelp(const Flags& flags, size_t width) {
  std::vector<std::string> groups;
  size_t column = 0;
  for (const Flag& flag : flags.all()) {
    if (flag.hidden) continue;
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
    column = std::max(column, ColumnsOf(FlagHead(flag)));
  }
  column = std::min(column, kTextColumnMax) + 4;
  std::string out;
  for (const std::string& group : groups) {
    out += StrCat("\n", group.empty() ? "Flags" : group, ":\n");
    for (const Flag& flag : flags.all()) {
      if (flag.hidden || flag.group != group) continue;
      std::string line = StrCat("  ", FlagHead(flag));
      if (ColumnsOf(line) + 1 > column) {
        out += line + "\n";
        line.clear();
      }
      line.append(column - ColumnsOf(line), ' ');
      out += StrCat(line, Wrap(flag.help, column, width - std::min(width - 20, column)), "\n");
    }
  }
  return out;
}

std::string ChildrenHelp(const Command& command, size_t width) {
  std::vector<std::string> groups;
  size_t column = 0;
  for (const Command& child : command.children) {
    if (child.hidden) continue;
    if (std::find(groups.begin(), groups.end(), child.group) == groups.end()) {
      groups.push_back(child.group);
    }
    column = std::max(column, child.name.size());
  }
  column += 5;
  std::string out;
  for (const std::string& group : groups) {
    out += StrCat("\n", group.empty() ? "Commands" : group, ":\n");
    for (const Command& child : command.children) {
      if (child.hidden || child.group != group) continue;
      std::string line = StrCat("  ", child.name);
      line.resize(column, ' ');
      out += StrCat(line, Wrap(child.summary, column, width - std::min(width - 20, column)), "\n");
    }
  }
  return out;
}

}  // namespace

const Command* Command::Find(std::string_view word) const {
  for (const Command& child : children) {
    if (child.name == word ||
        std::find(child.aliases.begin(), child.aliases.end(), word) != child.aliases.end()) {
      return &child;
    }
  }
  return nullptr;
}

std::string CommandHelp(const Command& command,
                        const std::string& path,
                        const Flags* flags,
                        int columns) {
  size_t width = static_cast<size_t>(std::clamp(columns, 60, 100));
  std::string out = StrCat(Wrap(command.summary, 0, width), "\n\nUsage:\n  ", path);
  if (!command.children.empty()) out += command.make ? " [COMMAND]" : " COMMAND";
  if (!command.usage.empty()) out += StrCat(" ", command.usage);
  out += command.usage.find("[flags]") == std::string::npos ? " [flags]\n" : "\n";
  if (!command.aliases.empty()) out += StrCat("\nAlso called: ", Join(command.aliases, ", "), "\n");
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    for (const Example& example : command.examples) {
      out += StrCat("  # ", example.what, "\n  ", example.line, "\n");
    }
  }
  if (!command.children.empty()) out += ChildrenHelp(command, width);
  if (flags) out += FlagsHelp(*flags, width);
  if (!command.notes.empty()) {
    out += "\n";
    for (std::string_view line : Split(command.notes, '\n')) out += Wrap(line, 0, width) + "\n";
  }
  if (!command.children.empty()) {
    out += StrCat("\n", path, " COMMAND --help says more about one command.\n");
  }
  return out;
}

}  // namespace swell::cli
