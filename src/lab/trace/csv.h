// CsvTable: a file of comma-separated values with a header, as traces and profiles are published.
// - Threads: a plain value.
// - Invariants: every row has as many fields as the header. Bounded in bytes, rows and columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::lab {

class CsvTable {
 public:
  // `name` is what errors call the text. The separator of `sacct -P` is '|'.
  static Result<CsvTable> Parse(const std::string& name, std::string text, char separator = ',');
  static Result<CsvTable> Read(const std::string& path, char separator = ',');

  size_t rows() const { return columns_.empty() ? 0 : fields_.size() / columns_.size(); }
  bool Has(std::string_view column) const { return Find(column) < columns_.size(); }
  // The column's number, or an error that lists the columns there are.
  Result<size_t> Column(std::string_view column) const;
  std::string_view Text(size_t row, size_t column) const;
  Result<double> Number(size_t row, size_t column) const;  // finite
  Result<int64_t> Integer(size_t row, size_t column) const;
  // An error about one field: "FILE:LINE: COLUMN "x": `expected`".
  Status Wrong(size_t row, size_t column, std::string_view expected) const;

 private:
  size_t Find(std::string_view column) const;

  std::string name_;
  std::string text_;
  std::vector<std::pair<uint32_t, uint32_t>> fields_;  // offset and length in text_
  std::vector<uint32_t> lines_;                        // of each row, from 1
  std::vector<std::string> columns_;
};

}  // namespace swell::lab
