// Table: the rows and columns that kubectl prints, made by the server.
// - Threads: pure functions over immutable kinds.
#pragma once

#include <vector>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// One row: cells and, as includeObject asks, the object or its metadata.
json::Value TableRow(const Core& core,
                     const api::KindInfo& kind,
                     const OutputForm& form,
                     const json::Value& object);
json::Value MakeTable(const api::KindInfo& kind,
                      const OutputForm& form,
                      json::Object list_meta,
                      json::Array rows,
                      bool with_columns);

// What a built-in kind's printer makes: one cell per column.
struct CellContext {
  WallTime now;
};
using PrintCells = void (*)(const json::Value& object,
                            const CellContext& context,
                            json::Array& cells);
struct TablePrinter {
  std::vector<api::PrinterColumn> columns;  // NAME included
  PrintCells print = nullptr;
};
// nullptr: the kind's own columns, or NAME and AGE.
const TablePrinter* BuiltInPrinter(const api::KindInfo& kind);
void AddWorkloadPrinters(std::map<std::string, TablePrinter, std::less<>>& printers);
void AddClusterPrinters(std::map<std::string, TablePrinter, std::less<>>& printers);
void AddPolicyPrinters(std::map<std::string, TablePrinter, std::less<>>& printers);
void AddPodAndNodePrinters(std::map<std::string, TablePrinter, std::less<>>& printers);

// Helpers of printers.
std::string AgeCell(const json::Value& object, WallTime now);  // 5m, or <unknown>
std::string SinceCell(std::string_view rfc3339, WallTime now);
std::string LabelsCell(const json::Object& labels);     // a=b,c=d or <none>
std::string SelectorCell(const json::Value* selector);  // as kubectl prints it
api::PrinterColumn Column(std::string name,
                          std::string type,
                          int priority = 0,
                          std::string format = {},
                          std::string description = {});

// The value at a CRD column's JSONPath; null if nothing is there.
json::Value PathValue(const json::Value& object, std::string_view json_path);

}  // namespace swell::apiserver
