#include "lab/trace/csv.h"

#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/strings.h"
#include "sched/state/amount_text.h"

namespace swell::lab {
namespace {

constexpr size_t kBytesMax = size_t{256} << 20;
constexpr size_t kRowsMax = 2'000'000;
constexpr size_t kColumnsMax = 256;

std::string_view Unquoted(std::string_view field) {
  field = Trim(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return field;
}

}  // namespace

Result<CsvTable> CsvTable::Read(const std::string& path, char separator) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kBytesMax));
  return Parse(path, std::move(text), separator);
}

Result<CsvTable> CsvTable::Parse(const std::string& name, std::string text, char separator) {
  if (text.size() > kBytesMax) return Status(Code::kTooLarge, StrCat(name, ": over 256 MiB"));
  CsvTable table;
  table.name_ = name;
  table.text_ = std::move(text);
  if (table.text_.starts_with("\xEF\xBB\xBF")) table.text_.erase(0, 3);  // a byte order mark
  const std::string_view all = table.text_;
  uint32_t line_number = 0;
  for (size_t start = 0; start < all.size();) {
    const size_t end = std::min(all.find('\n', start), all.size());
    const std::string_view line = all.substr(start, end - start);
    start = end + 1;
    ++line_number;
    if (Trim(line).empty()) continue;
    const std::vector<std::string_view> parts = Split(line, separator);
    if (table.columns_.empty()) {
      if (parts.size() > kColumnsMax) {
        return Status(Code::kInvalid, StrCat(name, ": over ", kColumnsMax, " columns"));
      }
      for (std::string_view part : parts) table.columns_.emplace_back(Unquoted(part));
      continue;
    }
    if (parts.size() != table.columns_.size()) {
      return Status(Code::kInvalid,
                    StrCat(name, ":", line_number, ": ",
                           sched::Plural(static_cast<int64_t>(parts.size()), "field"),
                           ", but the header has ", table.columns_.size()));
    }
    if (table.lines_.size() >= kRowsMax) {
      return Status(Code::kTooLarge, StrCat(name, ": over ", kRowsMax, " rows"));
    }
    table.lines_.push_back(line_number);
    for (std::string_view part : parts) {
      const std::string_view field = Unquoted(part);
      const auto offset = field.empty() ? 0 : field.data() - all.data();
      table.fields_.emplace_back(static_cast<uint32_t>(offset),
                                 static_cast<uint32_t>(field.size()));
    }
  }
  if (table.columns_.empty()) return Status(Code::kInvalid, StrCat(name, ": is empty"));
  return table;
}

size_t CsvTable::Find(std::string_view column) const {
  size_t i = 0;
  while (i < columns_.size() && columns_[i] != column) ++i;
  return i;
}

Result<size_t> CsvTable::Column(std::string_view column) const {
  const size_t found = Find(column);
  if (found < columns_.size()) return found;
  return Status(Code::kInvalid, StrCat(name_, ": has no column ", Quote(column), ", only ",
                                       Quote(Join(columns_, ", "))));
}

std::string_view CsvTable::Text(size_t row, size_t column) const {
  const auto [offset, length] = fields_[row * columns_.size() + column];
  return std::string_view(text_).substr(offset, length);
}

Result<double> CsvTable::Number(size_t row, size_t column) const {
  const std::string_view text = Text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return Wrong(row, column, "expected a number");
  }
  return value;
}

Result<int64_t> CsvTable::Integer(size_t row, size_t column) const {
  const std::optional<int64_t> value = ParseInt(Text(row, column));
  if (!value) return Wrong(row, column, "expected a whole number");
  return *value;
}

Status CsvTable::Wrong(size_t row, size_t column, std::string_view expected) const {
  return Status(Code::kInvalid, StrCat(name_, ":", lines_[row], ": ", columns_[column], " ",
                                       Quote(Text(row, column)), ": ", expected));
}

}  // namespace swell::lab
