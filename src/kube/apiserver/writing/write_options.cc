#include "kube/apiserver/writing/write_options.h"

#include "base/strings.h"
#include "kube/api/schema/field_errors.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxManagerBytes = 128;

std::string_view OptionsKind(std::string_view verb) {
  if (verb == "create") return "CreateOptions";
  if (verb == "update") return "UpdateOptions";
  return verb == "patch" ? "PatchOptions" : "DeleteOptions";
}

Status CheckManager(std::string_view manager, std::string_view kind) {
  if (manager.size() > kMaxManagerBytes) {
    return OptionsError(kind, api::TooLongError("fieldManager", kMaxManagerBytes));
  }
  for (size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<unsigned char>(manager[i]);
    if (c >= ' ' && c != 0x7F) continue;
    constexpr char kHex[] = "0123456789ABCDEF";
    const std::string code = {'0', '0', kHex[c >> 4], kHex[c & 15]};
    return OptionsError(
        kind, InvalidValue("fieldManager", manager,
                           StrCat("invalid character U+", code, " (at position ", i, ")")));
  }
  return Status::Ok();
}

Status CheckValidation(std::string_view validation, std::string_view kind) {
  if (validation.empty() || validation == "Ignore" || validation == "Strict" ||
      validation == "Warn") {
    return Status::Ok();
  }
  return OptionsError(
      kind, UnsupportedValue("fieldValidation", validation, {"", "Ignore", "Strict", "Warn"}));
}

}  // namespace

Status ReadDryRun(Call& call,
                  const std::vector<std::string_view>& values,
                  std::string_view options_kind) {
  std::string shown;
  bool supported = true;
  for (std::string_view value : values) {
    supported = supported && value == "All";
    shown += StrCat(shown.empty() ? "" : ", ", Quote(value));
  }
  if (supported) {
    call.dry_run = call.dry_run || !values.empty();
    return Status::Ok();
  }
  return OptionsError(options_kind, {"FieldValueNotSupported", "dryRun",
                                     StrCat("Unsupported value: []string{", shown,
                                            "}: supported values: \"All\"")});
}

Status ReadWriteOptions(Call& call, std::string_view verb) {
  const std::string_view kind = OptionsKind(verb);
  std::vector<std::string_view> dry_run = call.query.All("dryRun");
  std::erase(dry_run, "");
  SWELL_RETURN_IF_ERROR(ReadDryRun(call, dry_run, kind));
  if (kind == "DeleteOptions") return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckManager(call.query.Get("fieldManager"), kind));
  SWELL_RETURN_IF_ERROR(CheckValidation(call.query.Get("fieldValidation"), kind));
  if (verb != "patch") return Status::Ok();
  if (MediaType(call.request.content_type) == "application/apply-patch+yaml") {
    if (!call.query.Get("fieldManager").empty()) return Status::Ok();
    return OptionsError(kind, RequiredValue("fieldManager", "is required for apply patch"));
  }
  if (!call.query.Find("force")) return Status::Ok();
  return OptionsError(kind, ForbiddenValue("force", "may not be specified for non-apply patch"));
}

}  // namespace swell::apiserver
