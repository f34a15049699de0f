// Output: the forms of -o that every command shares.
// - Threads: values; one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/session.h"
#include "json/json_path.h"

namespace swell::cli {

struct OutputForm {
  enum class Kind { kTable, kWide, kJson, kYaml, kName, kJsonPath, kColumns };
  Kind kind = Kind::kTable;
  std::optional<json::JsonPath> path;
  std::vector<std::pair<std::string, json::JsonPath>> columns;  // title and what stands below it
  bool headers = true;
  bool managed_fields = false;  // who wrote what; JSON and YAML leave it out, as kubectl does

  bool table() const { return kind == Kind::kTable || kind == Kind::kWide; }
};

// "", wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,…; -file=FILE of both.
Result<OutputForm> ParseOutputForm(const std::string& text);

// A path or template that the user typed; what is wrong with it is a Misuse.
Result<json::JsonPath> ParseJsonPath(std::string_view text);

// One object, or a List of several, in a form that is not a table.
std::string FormatObject(const OutputForm& form,
                         const json::Value& object,
                         std::string_view resource_name);
// Several, as one List.
json::Value MakeList(const std::vector<json::SharedValue>& objects);

// "pytorchjob.kubeflow.org/x": from the object alone.
std::string ResourceNameOf(const json::Value& object);

// The colour that a word of a STATUS column deserves.
Colour StatusColour(std::string_view word);

}  // namespace swell::cli
