#include "kube/apiserver/access/rbac_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/rule_words.h"

namespace swell::apiserver {
namespace {

using Texts = std::vector<std::string>;

bool MatchesResource(const Texts& resources, const std::string& resource, std::string_view sub) {
  if (api::HasWordOrAll(resources, sub.empty() ? resource : StrCat(resource, "/", sub)))
    return true;
  return !sub.empty() && Contains(resources, StrCat("*/", sub));
}

bool MatchesPath(const Texts& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(), [path](std::string_view pattern) {
    if (pattern == "*" || pattern == path) return true;
    if (pattern.empty() || pattern.back() != '*') return false;
    return path.starts_with(pattern.substr(0, pattern.find_last_not_of('*') + 1));
  });
}

// Whether `rule` gives all of `part`, which has one verb and one resource or path.
bool Covers(const PolicyRule& rule, const PolicyRule& part) {
  if (!api::HasWordOrAll(rule.verbs, part.verbs[0])) return false;
  if (!part.paths.empty()) return MatchesPath(rule.paths, part.paths[0]);
  const std::string& resource = part.resources[0];
  const size_t slash = resource.find('/');
  if (!api::HasWordOrAll(rule.groups, part.groups[0])) return false;
  if (!api::HasWordOrAll(rule.resources, resource) &&
      (slash == std::string::npos ||
       !Contains(rule.resources, StrCat("*", resource.substr(slash))))) {
    return false;
  }
  return rule.names.empty() || (!part.names.empty() && Contains(rule.names, part.names[0]));
}

void BreakDown(const PolicyRule& rule, PolicyRules& parts) {
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) parts.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) {
          parts.push_back({{verb}, {group}, {resource}, {name}, {}});
        }
      }
    }
  }
  for (const std::string& path : rule.paths) {
    for (const std::string& verb : rule.verbs) parts.push_back({{verb}, {}, {}, {}, {path}});
  }
}

void AppendField(std::string& line, std::string_view name, const Texts& texts) {
  if (texts.empty()) return;
  if (line.size() > 1) line += ", ";
  line += StrCat(name, ":[");
  for (size_t i = 0; i < texts.size(); ++i) line += StrCat(i == 0 ? "" : " ", Quote(texts[i]));
  line += "]";
}

}  // namespace

PolicyRules ReadRules(const json::Value& role) {
  PolicyRules rules;
  for (const json::Value& rule : json::GetArray(role, {"rules"})) {
    rules.push_back({json::Texts(json::GetArray(rule, {"verbs"})),
                     json::Texts(json::GetArray(rule, {"apiGroups"})),
                     json::Texts(json::GetArray(rule, {"resources"})),
                     json::Texts(json::GetArray(rule, {"resourceNames"})),
                     json::Texts(json::GetArray(rule, {"nonResourceURLs"}))});
  }
  return rules;
}

bool Allows(const PolicyRule& rule, const AccessAttributes& attributes) {
  if (!api::HasWordOrAll(rule.verbs, attributes.verb)) return false;
  if (attributes.resource.empty()) return MatchesPath(rule.paths, attributes.path);
  return api::HasWordOrAll(rule.groups, attributes.group) &&
         MatchesResource(rule.resources, attributes.resource, attributes.subresource) &&
         (rule.names.empty() || Contains(rule.names, attributes.name));
}

PolicyRules Uncovered(const PolicyRules& held, const PolicyRules& wanted) {
  PolicyRules parts;
  for (const PolicyRule& rule : wanted) BreakDown(rule, parts);
  std::erase_if(parts, [&held](const PolicyRule& part) {
    return std::any_of(held.begin(), held.end(),
                       [&part](const PolicyRule& rule) { return Covers(rule, part); });
  });
  return parts;
}

std::string Describe(const PolicyRules& uncovered) {
  // The verbs of one resource go together, in the order they were asked for.
  std::map<std::tuple<std::string, std::string, Texts>, Texts> simple;
  std::set<std::string> lines;
  for (const PolicyRule& part : uncovered) {
    if (part.paths.empty()) {
      simple[{part.groups[0], part.resources[0], part.names}].push_back(part.verbs[0]);
      continue;
    }
    std::string line = "{";
    AppendField(line, "NonResourceURLs", part.paths);
    AppendField(line, "Verbs", part.verbs);
    lines.insert(line + "}");
  }
  for (const auto& [where, verbs] : simple) {
    std::string line = "{";
    AppendField(line, "APIGroups", {std::get<0>(where)});
    AppendField(line, "Resources", {std::get<1>(where)});
    AppendField(line, "ResourceNames", std::get<2>(where));
    AppendField(line, "Verbs", verbs);
    lines.insert(line + "}");
  }
  return Join({lines.begin(), lines.end()}, "\n");
}

}  // namespace swell::apiserver
