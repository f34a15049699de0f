// Fuzzes edits of an object's text: the first document is the object, the second (after a zero
// byte) says what to edit, as [[part, key, value]...]; without a value the member is removed.
// Editing the text must give what editing the document and printing it gives.
#include "kube/api/patch/edit_text.h"

#include <cstdint>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "json/value.h"

namespace {

using swell::api::TextEdit;
using swell::json::Value;

constexpr swell::json::ParseLimits kLimits = {.depth = 32, .bytes = 1 << 14};

bool NeedsNoEscape(std::string_view key) {
  return !key.empty() && swell::json::Print(Value(key)) == swell::StrCat('"', key, '"');
}

// The texts of what is returned point into `document`.
std::vector<TextEdit> ReadEdits(const Value& document) {
  std::vector<TextEdit> edits;
  std::set<std::pair<std::string_view, std::string_view>> members;
  const auto* list = document.if_array();
  if (list == nullptr) return edits;
  for (const Value& item : *list) {
    const auto* words = item.if_array();
    if (words == nullptr || words->size() < 2 || edits.size() == 8) continue;
    if (!(*words)[0].is_string() || !(*words)[1].is_string()) continue;
    const std::string_view part = swell::json::View((*words)[0].get_string());
    const std::string_view key = swell::json::View((*words)[1].get_string());
    if (!NeedsNoEscape(part) || !NeedsNoEscape(key)) continue;
    if (!members.emplace(part, key).second) continue;
    edits.push_back({part, key, words->size() > 2 ? swell::json::Print((*words)[2]) : ""});
  }
  return edits;
}

// Returns false if the document or one of the parts is not an object.
bool EditDocument(Value& document, const std::vector<TextEdit>& edits) {
  if (!document.is_object()) return false;
  for (const TextEdit& edit : edits) {
    const Value* part = swell::json::Find(document, {edit.part});
    if (part != nullptr && !part->is_object()) return false;
  }
  for (const TextEdit& edit : edits) {
    if (edit.value.empty()) {
      swell::json::Remove(document, {edit.part, edit.key});
    } else {
      auto value = swell::json::Parse(edit.value);
      SWELL_CHECK(value.ok());
      swell::json::Set(document, {edit.part, edit.key}, std::move(*value));
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  const auto told = swell::json::Parse(text.substr(cut + 1), kLimits);
  if (!told.ok()) return 0;
  const std::vector<TextEdit> edits = ReadEdits(*told);
  (void)swell::api::EditText(text.substr(0, cut), edits);  // whatever it is

  auto document = swell::json::Parse(text.substr(0, cut), kLimits);
  if (!document.ok()) return 0;
  const auto edited = swell::api::EditText(swell::json::Print(*document), edits);
  // Where nothing is to be edited, nothing is looked at.
  if (edits.empty()) return 0;
  SWELL_CHECK(edited.has_value() == EditDocument(*document, edits));
  if (edited) SWELL_CHECK_MSG(*edited == swell::json::Print(*document), *edited);
  return 0;
}
