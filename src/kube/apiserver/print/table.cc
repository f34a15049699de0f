#include "kube/apiserver/print/table.h"

#include "base/strings.h"
#include "json/json_path.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/apiserver/print/output.h"

namespace swell::apiserver {
namespace {

using Printers = std::map<std::string, TablePrinter, std::less<>>;

constexpr std::string_view kNameDescription =
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated.";

const Printers& AllPrinters() {
  static const Printers printers = [] {
    Printers all;
    AddPodAndNodePrinters(all);
    AddWorkloadPrinters(all);
    AddPolicyPrinters(all);
    AddClusterPrinters(all);
    return all;
  }();
  return printers;
}

json::Object ColumnObject(const api::PrinterColumn& column) {
  json::Object object;
  object["name"] = column.name;
  object["type"] = column.type;
  object["format"] = column.format;
  object["description"] = column.description;
  object["priority"] = column.priority;
  return object;
}

// The columns of a kind without a printer of its own.
std::vector<api::PrinterColumn> GenericColumns(const api::KindInfo& kind) {
  std::vector<api::PrinterColumn> columns{Column("Name", "string", 0, "name")};
  if (kind.columns.empty()) {
    api::PrinterColumn age = Column("Age", "date");
    age.json_path = ".metadata.creationTimestamp";
    columns.push_back(std::move(age));
  }
  for (const api::PrinterColumn& column : kind.columns) {
    if (column.name != "Name" && column.name != "NAME") columns.push_back(column);
  }
  return columns;
}

json::Value GenericCell(const json::Value& object, const api::PrinterColumn& column, WallTime now) {
  json::Value value = PathValue(object, column.json_path);
  if (value.is_null()) return value;
  if (column.type == "date") {
    if (!value.is_string()) return json::Value();
    const std::string_view text = json::View(value.get_string());
    return json::Value(api::ParseTime(text) ? SinceCell(text, now) : "<invalid>");
  }
  if (column.type == "integer" || column.type == "number") {
    return value.is_number() ? value : json::Value();
  }
  if (column.type == "boolean") return value.is_bool() ? value : json::Value();
  return value.is_string() ? value : json::Value(json::Print(value));
}

}  // namespace

api::PrinterColumn Column(
    std::string name, std::string type, int priority, std::string format, std::string description) {
  api::PrinterColumn column;
  if (description.empty() && format == "name") description = kNameDescription;
  column.name = std::move(name);
  column.type = std::move(type);
  column.priority = priority;
  column.format = std::move(format);
  column.description = std::move(description);
  return column;
}

std::string SinceCell(std::string_view rfc3339, WallTime now) {
  const auto time = api::ParseTime(rfc3339);
  if (!time) return "<unknown>";
  return api::HumanDuration(now - *time);
}

std::string AgeCell(const json::Value& object, WallTime now) {
  return SinceCell(json::GetString(object, {"metadata", "creationTimestamp"}), now);
}

std::string LabelsCell(const json::Object& labels) {
  std::map<std::string, std::string> sorted;
  for (const auto& [key, value] : labels) {
    if (value.is_string()) {
      sorted[std::string(key.data(), key.size())] = json::View(value.get_string());
    }
  }
  std::string text;
  for (const auto& [key, value] : sorted) text += StrCat(text.empty() ? "" : ",", key, "=", value);
  return text.empty() ? "<none>" : text;
}

std::string SelectorCell(const json::Value* selector) {
  const auto parsed = api::LabelSelector::FromJson(selector);
  if (!parsed.ok() || selector == nullptr) return "<none>";
  std::string text = parsed->ToString();
  return text.empty() ? "<none>" : text;
}

json::Value PathValue(const json::Value& object, std::string_view json_path) {
  constexpr size_t kMaxVisits = 100'000;
  const auto path = json::JsonPath::Parse(json_path);
  if (!path.ok()) return json::Value();
  const auto found = path->Find(object, kMaxVisits);
  return found.empty() ? json::Value() : *found.front();
}

const TablePrinter* BuiltInPrinter(const api::KindInfo& kind) {
  if (kind.custom) return nullptr;
  const auto found = AllPrinters().find(kind.StoreResource());
  return found == AllPrinters().end() ? nullptr : &found->second;
}

json::Value TableRow(const Core& core,
                     const api::KindInfo& kind,
                     const OutputForm& form,
                     const json::Value& object) {
  json::Array cells;
  const CellContext context{core.clock.Now()};
  const TablePrinter* printer = BuiltInPrinter(kind);
  // Printers know the storage version.
  json::Value converted;
  const json::Value* shown = &object;
  if (printer != nullptr && kind.stored_otherwise) {
    const auto storage = core.scheme->StorageKind(kind.gvk.group, kind.plural);
    converted = object;
    if (storage && core.scheme->Convert(converted, *storage).ok()) shown = &converted;
  }
  if (printer != nullptr) {
    printer->print(*shown, context, cells);
  } else {
    for (const api::PrinterColumn& column : GenericColumns(kind)) {
      if (cells.empty()) {
        cells.emplace_back(api::Name(object));
      } else {
        cells.push_back(GenericCell(object, column, context.now));
      }
    }
  }
  json::Object row;
  row["cells"] = std::move(cells);
  switch (form.include) {
    case OutputForm::Include::kNone:
      row["object"] = nullptr;
      break;
    case OutputForm::Include::kMetadata:
      row["object"] = MetadataOnly(object, form.meta_version);
      break;
    case OutputForm::Include::kObject:
      row["object"] = object;
      break;
  }
  return row;
}

json::Value MakeTable(const api::KindInfo& kind,
                      const OutputForm& form,
                      json::Object list_meta,
                      json::Array rows,
                      bool with_columns) {
  json::Array columns;
  if (with_columns) {
    const TablePrinter* printer = BuiltInPrinter(kind);
    const auto generic =
        printer == nullptr ? GenericColumns(kind) : std::vector<api::PrinterColumn>();
    for (const api::PrinterColumn& column : printer == nullptr ? generic : printer->columns) {
      columns.push_back(ColumnObject(column));
    }
  }
  json::Object table;
  table["kind"] = "Table";
  table["apiVersion"] = StrCat("meta.k8s.io/", form.meta_version);
  table["metadata"] = std::move(list_meta);
  table["columnDefinitions"] = std::move(columns);
  table["rows"] = std::move(rows);
  return table;
}

}  // namespace swell::apiserver
