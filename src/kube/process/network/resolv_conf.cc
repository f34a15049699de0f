#include "kube/process/network/resolv_conf.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace swell::process {
namespace {

struct Settings {
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::pair<std::string, std::string>> options;
};

void AddOnce(std::vector<std::string>& list, std::string_view word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.emplace_back(word);
}

void SetOption(Settings& settings, std::string_view name, std::string_view value) {
  for (auto& option : settings.options) {
    if (option.first == name) {
      option.second = value;
      return;
    }
  }
  settings.options.emplace_back(name, value);
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

Settings Parse(std::string_view resolv_conf) {
  Settings settings;
  for (std::string_view line : Split(resolv_conf, '\n')) {
    std::vector<std::string_view> words = Words(Trim(line));
    if (words.size() < 2) continue;
    const std::string_view key = words.front();
    words.erase(words.begin());
    // The last of these lines is the one that counts.
    if (key == "search" || key == "domain") settings.searches.assign(words.begin(), words.end());
    if (key == "nameserver") settings.servers.emplace_back(words.front());
    if (key != "options") continue;
    for (std::string_view word : words) {
      const size_t colon = std::min(word.find(':'), word.size());
      SetOption(settings, word.substr(0, colon),
                colon < word.size() ? word.substr(colon + 1) : std::string_view());
    }
  }
  return settings;
}

// The file is made of words: a blank within one would begin another.
bool IsWord(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::string WithPodsDns(std::string_view resolv_conf, const node::DnsSpec& dns) {
  const bool adds = !dns.servers.empty() || !dns.searches.empty() || !dns.options.empty();
  if (!adds) return std::string(resolv_conf);
  Settings settings = Parse(resolv_conf);
  for (const std::string& server : dns.servers) {
    if (IsWord(server)) AddOnce(settings.servers, server);
  }
  for (const std::string& search : dns.searches) {
    if (IsWord(search)) AddOnce(settings.searches, search);
  }
  for (const auto& [name, value] : dns.options) {
    if (IsWord(name) && (value.empty() || IsWord(value))) SetOption(settings, name, value);
  }
  std::string text;
  if (!settings.searches.empty()) text += StrCat("search ", Join(settings.searches, " "), "\n");
  for (const std::string& server : settings.servers) text += StrCat("nameserver ", server, "\n");
  std::vector<std::string> options;
  for (const auto& [name, value] : settings.options) {
    options.push_back(value.empty() ? name : StrCat(name, ":", value));
  }
  if (!options.empty()) text += StrCat("options ", Join(options, " "), "\n");
  return text;
}

std::string WithShortWaits(std::string_view resolv_conf) {
  const Settings settings = Parse(resolv_conf);
  const bool says = std::any_of(
      settings.options.begin(), settings.options.end(),
      [](const auto& option) { return option.first == "timeout" || option.first == "attempts"; });
  if (says || settings.servers.empty()) return std::string(resolv_conf);
  const bool ends = resolv_conf.ends_with('\n');
  return StrCat(resolv_conf, ends ? "" : "\n", "options timeout:1 attempts:2\n");
}

std::string OnlyNameServers(std::string_view resolv_conf, const std::set<std::string>& addresses) {
  std::string kept;
  for (std::string_view line : Split(resolv_conf, '\n')) {
    constexpr std::string_view kServer = "nameserver";
    const bool server = line.starts_with(kServer);
    if (line.empty()) continue;
    if (server && !addresses.contains(std::string(Trim(line.substr(kServer.size()))))) continue;
    kept += StrCat(line, "\n");
  }
  return kept;
}

}  // namespace swell::process
