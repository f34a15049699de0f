#include "kube/process/files/program_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kConfigBytesMax = 64 << 10;

std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// "/home/ada/venv" of "/home/ada/venv/bin/python3".
std::string PrefixOf(const std::string& program) { return ParentOf(ParentOf(program)); }

std::string ConfigOf(const std::string& prefix) { return prefix + "/pyvenv.cfg"; }

bool IsBelowUsr(const std::string& prefix) {
  return prefix.empty() || prefix == "/" || prefix == "/usr" || prefix.starts_with("/usr/");
}

// Whether a Python's standard library is there, as pyenv, conda and a build from source put it.
bool IsInstallation(const std::string& prefix) {
  const auto names = ListDir(prefix + "/lib");
  if (!names.ok()) return false;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return name.starts_with("python3") && FileExists(StrCat(prefix, "/lib/", name, "/os.py"));
  });
}

// The directory of the Python that a virtual environment was made with; empty: it is not one.
std::string BaseOf(const std::string& prefix) {
  const auto config = ReadFile(ConfigOf(prefix), kConfigBytesMax);
  if (!config.ok()) return "";
  for (std::string_view line : Split(*config, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trim(line.substr(0, equals)) != "home") continue;
    return std::string(Trim(line.substr(equals + 1)));
  }
  return "";
}

void AddPath(const std::string& path, ProgramFiles& files) {
  const auto has = [&path](const std::string& one) {
    return path == one || path.starts_with(one + "/");
  };
  if (!FileExists(path) || std::any_of(files.paths.begin(), files.paths.end(), has)) return;
  files.paths.push_back(path);
}

void AddFilesOf(const std::string& program, ProgramFiles& files) {
  const std::string prefix = PrefixOf(program);
  if (IsBelowUsr(prefix)) return;
  if (FileExists(ConfigOf(prefix)) || IsInstallation(prefix)) return AddPath(prefix, files);
  // A bin directory in a home, such as ~/.local/bin: it and the lib beside it. The rest of the home
  // is private.
  AddPath(ParentOf(program), files);
  AddPath(prefix + "/lib", files);
  if (files.user_base.empty()) files.user_base = prefix;
}

}  // namespace

std::string Canonical(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(path, error);
  return error ? std::string() : found.string();
}

ProgramFiles FilesOf(const std::string& program) {
  ProgramFiles files;
  AddFilesOf(program, files);
  const std::string base = BaseOf(PrefixOf(program));
  if (!base.empty()) AddFilesOf(base + "/python3", files);
  for (const std::string& python : {program, ParentOf(program) + "/python3"}) {
    AddFilesOf(Canonical(python), files);
  }
  return files;
}

}  // namespace swell::process
