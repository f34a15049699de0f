#include "kube/api/crd/definitions.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/strings.h"
#include "kube/api/schema/schema_text.h"

namespace swell::api {
namespace {

const std::map<std::string_view, std::string Definition::*> kTexts = {
    {"group", &Definition::group},      {"version", &Definition::version},
    {"plural", &Definition::plural},    {"short", &Definition::short_names},
    {"also", &Definition::also_served}, {"categories", &Definition::categories},
    {"scale", &Definition::scale},      {"columns", &Definition::columns},
    {"roles", &Definition::roles},      {"suspend", &Definition::suspend},
    {"workload", &Definition::workload}};

Definition ReadDefinition(std::string_view package, std::string_view line) {
  Definition out;
  out.package = package;
  std::vector<std::string_view> words = Split(line, ' ');
  SWELL_CHECK_MSG(words.size() > 1, line);
  out.kind = words[1];
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    SWELL_CHECK_MSG(equals != std::string_view::npos, line);
    const std::string_view key = words[i].substr(0, equals);
    const std::string value(words[i].substr(equals + 1));
    if (key == "scope") {
      out.namespaced = value != "Cluster";
    } else if (key == "status") {
      out.has_status = value != "no";
    } else {
      const auto text = kTexts.find(key);
      SWELL_CHECK_MSG(text != kTexts.end(), StrCat("unknown key in a definition: ", key));
      out.*(text->second) = value;
    }
  }
  SWELL_CHECK_MSG(!out.group.empty() && !out.version.empty() && !out.plural.empty(), line);
  return out;
}

std::vector<Definition> ReadDefinitions() {
  std::vector<Definition> out;
  for (std::string_view text : EmbeddedSchemas()) {
    std::string_view package;
    for (std::string_view line : Split(text, '\n')) {
      if (line.starts_with("package ")) package = Trim(line.substr(8));
      if (line.starts_with("definition ")) out.push_back(ReadDefinition(package, line));
    }
  }
  return out;
}

}  // namespace

const std::vector<Definition>& Definitions() {
  static const std::vector<Definition> definitions = ReadDefinitions();
  return definitions;
}

std::vector<Definition> JobDefinitions() {
  std::vector<Definition> out;
  std::copy_if(Definitions().begin(), Definitions().end(), std::back_inserter(out),
               [](const Definition& one) { return one.is_job(); });
  return out;
}

std::string JobGroups() {
  std::vector<std::string> groups;
  for (const Definition& one : Definitions()) {
    const bool known = std::find(groups.begin(), groups.end(), one.group) != groups.end();
    if (!known && one.group != "swell.dev") groups.push_back(one.group);
  }
  return Join(groups, ",");
}

std::string JobResources() {
  std::vector<std::string> resources;
  auto add = [&resources](const std::string& resource) {
    const auto known = std::find(resources.begin(), resources.end(), resource);
    if (known == resources.end()) resources.push_back(resource);
  };
  for (const Definition& one : Definitions()) {
    if (one.group == "swell.dev" || !one.namespaced) continue;
    add(one.plural);
    if (!one.scale.empty()) add(one.plural + "/scale");
  }
  return Join(resources, ",");
}

}  // namespace swell::api
