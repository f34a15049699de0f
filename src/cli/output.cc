#include "cli/output.h"

#include "api/meta.h"
#include "base/file.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace swell::cli {

Result<OutputForm> ParseOutputForm(const std::string& text) {
  OutputForm form;
  constexpr std::string_view kPath = "jsonpath=";
  constexpr std::string_view kPathFile = "jsonpath-file=";
  if (text.empty()) return form;
  if (text == "wide") {
    form.kind = OutputForm::Kind::kWide;
  } else if (text == "json") {
    form.kind = OutputForm::Kind::kJson;
  } else if (text == "yaml") {
    form.kind = OutputForm::Kind::kYaml;
  } else if (text == "name") {
    form.kind = OutputForm::Kind::kName;
  } else if (text.starts_with(kPath) || text.starts_with(kPathFile)) {
    std::string expression = text.substr(kPath.size());
    if (text.starts_with(kPathFile)) {
      SWELL_ASSIGN_OR_RETURN(expression, ReadFile(text.substr(kPathFile.size()), 1 << 20));
    }
    form.kind = OutputForm::Kind::kJsonPath;
    SWELL_ASSIGN_OR_RETURN(form.path, JsonPath::Parse(expression));
  } else {
    return Misuse(StrCat("--output ", Quote(text),
                         " is not known; there are json, yaml, wide, name and jsonpath=TEMPLATE"));
  }
  return form;
}

std::string FormatObject(const OutputForm& form,
                         const json::Value& object,
                         std::string_view resource_name) {
  switch (form.kind) {
    case OutputForm::Kind::kJson:
      return json::PrintPretty(object) + "\n";
    case OutputForm::Kind::kYaml:
      return json::PrintYaml(object);
    case OutputForm::Kind::kJsonPath:
      return form.path->Print(object);
    case OutputForm::Kind::kName:
    case OutputForm::Kind::kTable:
    case OutputForm::Kind::kWide:
      break;
  }
  return StrCat(resource_name, "\n");
}

json::Value MakeList(const std::vector<json::SharedValue>& objects) {
  json::Array items;
  for (const json::SharedValue& object : objects) items.push_back(*object);
  return json::Object{{"apiVersion", "v1"},
                      {"items", std::move(items)},
                      {"kind", "List"},
                      {"metadata", json::Object{{"resourceVersion", ""}}}};
}

std::string ResourceNameOf(const json::Value& object) {
  std::string_view api_version = json::GetString(object, {"apiVersion"});
  size_t slash = api_version.find('/');
  std::string group =
      slash == std::string_view::npos ? "" : StrCat(".", api_version.substr(0, slash));
  return StrCat(ToLower(json::GetString(object, {"kind"})), group, "/", api::Name(object));
}

Colour StatusColour(std::string_view word) {
  for (std::string_view good : {"Running", "Ready", "Active", "Bound", "RUNNING", "ready"}) {
    if (word == good) return Colour::kGreen;
  }
  for (std::string_view over : {"Completed", "Succeeded", "SUCCEEDED", "Complete"}) {
    if (word == over) return Colour::kBlue;
  }
  for (std::string_view waits : {"Pending", "ContainerCreating", "Terminating", "Preempted",
                                 "Suspended", "Restarting", "PENDING", "Unschedulable"}) {
    if (word == waits || word.starts_with("Init:")) return Colour::kYellow;
  }
  for (std::string_view bad : {"Failed", "Error", "CrashLoopBackOff", "OOMKilled", "NotReady",
                               "ImagePullBackOff", "ErrImagePull", "Evicted", "FAILED", "Lost"}) {
    if (word.starts_with(bad)) return Colour::kRed;
  }
  return Colour::kNone;
}

}  // namespace swell::cli
