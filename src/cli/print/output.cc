#include "cli/print/output.h"

#include "base/file.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr size_t kFormFileMax = 1 << 20;

// "jsonpath=X" is X, "jsonpath-file=F" what is in F; nothing for other forms.
Result<std::optional<std::string>> ValueOf(std::string_view form, const std::string& text) {
  const std::string direct = StrCat(form, "="), file = StrCat(form, "-file=");
  if (text.starts_with(direct)) return std::optional(text.substr(direct.size()));
  if (!text.starts_with(file)) return std::optional<std::string>();
  SWELL_ASSIGN_OR_RETURN(std::string content, ReadFile(text.substr(file.size()), kFormFileMax));
  return std::optional(std::move(content));
}

// "NAME:.metadata.name,NODE:.spec.nodeName"; from a file, a line of titles above one of paths.
Status ParseColumns(const std::string& text, OutputForm& form) {
  std::vector<std::pair<std::string, std::string>> columns;
  auto words = [](std::string_view line) {
    std::vector<std::string> out;
    for (std::string_view word : Split(line, ' ')) {
      if (!word.empty()) out.emplace_back(word);
    }
    return out;
  };
  if (const size_t line = text.find('\n'); line != std::string::npos) {
    const std::string rest = text.substr(line + 1);
    const std::vector<std::string> titles = words(text.substr(0, line));
    const std::vector<std::string> paths = words(rest.substr(0, rest.find('\n')));
    if (titles.size() != paths.size()) {
      return Misuse(StrCat("--output custom-columns-file: ", titles.size(), " titles and ",
                           paths.size(), " paths; expected as many titles as paths"));
    }
    for (size_t i = 0; i < titles.size(); ++i) columns.emplace_back(titles[i], paths[i]);
  } else {
    for (std::string_view part : Split(text, ',')) {
      const size_t colon = part.find(':');
      if (colon == std::string_view::npos || colon == 0) {
        return Misuse(StrCat("--output custom-columns: ", Quote(part), ": expected TITLE:PATH"));
      }
      columns.emplace_back(part.substr(0, colon), part.substr(colon + 1));
    }
  }
  if (columns.empty()) return Misuse("--output custom-columns: expected TITLE:PATH");
  for (auto& [title, path] : columns) {
    SWELL_ASSIGN_OR_RETURN(json::JsonPath parsed, ParseJsonPath(path));
    form.columns.emplace_back(std::move(title), std::move(parsed));
  }
  form.kind = OutputForm::Kind::kColumns;
  return Status::Ok();
}

std::string PrintColumns(const OutputForm& form, const json::Value& object) {
  std::vector<std::string> titles;
  for (const auto& column : form.columns) titles.push_back(column.first);
  TextTable table(form.headers ? titles : std::vector<std::string>{});
  auto add = [&](const json::Value& one) {
    std::vector<std::string> row;
    for (const auto& column : form.columns) {
      std::vector<std::string> texts;
      for (const json::Value* found : column.second.Find(one)) {
        if (!found->is_null()) texts.push_back(OneLine(json::PlainText(*found)));
      }
      row.push_back(texts.empty() ? "<none>" : Join(texts, ","));
    }
    table.Add(std::move(row));
  };
  if (api::KindOf(object) == "List") {
    for (const json::Value& item : api::Items(object)) add(item);
  } else {
    add(object);
  }
  return table.ToString();
}

json::Value WithoutManagedFields(json::Value object) {
  auto strip = [](json::Value& one) {
    json::Value* metadata = json::FindMutable(one, {"metadata"});
    if (metadata != nullptr && metadata->is_object()) metadata->get_object().erase("managedFields");
  };
  strip(object);
  json::Value* items = json::FindMutable(object, {"items"});
  if (items != nullptr && items->is_array()) {
    for (json::Value& item : items->get_array()) strip(item);
  }
  return object;
}

}  // namespace

Result<json::JsonPath> ParseJsonPath(std::string_view text) {
  auto path = json::JsonPath::Parse(text);
  if (!path.ok()) return Misuse(path.status().message());
  return path;
}

Result<OutputForm> ParseOutputForm(const std::string& text) {
  OutputForm form;
  SWELL_ASSIGN_OR_RETURN(auto path, ValueOf("jsonpath", text));
  SWELL_ASSIGN_OR_RETURN(auto columns, ValueOf("custom-columns", text));
  if (text.empty()) return form;
  if (text == "wide") {
    form.kind = OutputForm::Kind::kWide;
  } else if (text == "json") {
    form.kind = OutputForm::Kind::kJson;
  } else if (text == "yaml") {
    form.kind = OutputForm::Kind::kYaml;
  } else if (text == "name") {
    form.kind = OutputForm::Kind::kName;
  } else if (path) {
    form.kind = OutputForm::Kind::kJsonPath;
    SWELL_ASSIGN_OR_RETURN(form.path, ParseJsonPath(*path));
  } else if (columns) {
    SWELL_RETURN_IF_ERROR(ParseColumns(*columns, form));
  } else {
    return Misuse(StrCat(
        "--output ", Quote(text),
        ": expected json, yaml, wide, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…"));
  }
  return form;
}

std::string FormatObject(const OutputForm& form,
                         const json::Value& object,
                         std::string_view resource_name) {
  switch (form.kind) {
    case OutputForm::Kind::kJson:
      return json::PrintPretty(form.managed_fields ? object : WithoutManagedFields(object)) + "\n";
    case OutputForm::Kind::kYaml:
      return json::PrintYaml(form.managed_fields ? object : WithoutManagedFields(object));
    case OutputForm::Kind::kColumns:
      return PrintColumns(form, object);
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
  std::string_view api_version = api::ApiVersionOf(object);
  size_t slash = api_version.find('/');
  std::string group =
      slash == std::string_view::npos ? "" : StrCat(".", api_version.substr(0, slash));
  return StrCat(ToLower(api::KindOf(object)), group, "/", api::Name(object));
}

Colour StatusColour(std::string_view word) {
  for (std::string_view good : {"Running", "Ready", "Active", "Bound", "RUNNING", "ready"}) {
    if (word == good) return Colour::kGreen;
  }
  if (word.ends_with(",Unhealthy")) return Colour::kRed;
  for (std::string_view over : {"Completed", "Succeeded", "SUCCEEDED", "Complete"}) {
    if (word == over) return Colour::kBlue;
  }
  for (std::string_view waits : {"Pending", "ContainerCreating", "Terminating", "Preempted",
                                 "Suspended", "Restarting", "PENDING", "Unschedulable"}) {
    if (word == waits || word.starts_with("Init:")) return Colour::kYellow;
  }
  for (std::string_view bad :
       {"Failed", "Error", "CrashLoopBackOff", "OOMKilled", "NotReady", "ImagePullBackOff",
        "ErrImagePull", "Evicted", "FAILED", "Lost", "Hung"}) {
    if (word.starts_with(bad)) return Colour::kRed;
  }
  return Colour::kNone;
}

}  // namespace swell::cli
