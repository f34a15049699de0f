// Output: the forms of -o that every command shares.
// - Threads: values; one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/print/jsonpath.h"
#include "cli/session.h"

namespace swell::cli {

struct OutputForm {
  enum class Kind { kTable, kWide, kJson, kYaml, kName, kJsonPath, kColumns };
  Kind kind = Kind::kTable;
  std::optional<JsonPath> path;
  std::vector<std::pair<std::string, JsonPath>> columns;  // title and what stands below it
  bool headers = true;
  bool managed_fields = false;  // who wrote what; JSON and YAML leave it out, as kubectl does

  bool table() const { return kind == Kind::kTable || kind == Kind::kWide; }
};

// "", wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=TITLE:PATH,…; -file=FILE of both.
Result<OutputForm> ParseOutputForm(const std::string& text);

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
