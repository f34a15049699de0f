#include "cli/print/view_output.h"

#include "base/strings.h"

namespace swell::cli {

void ViewOutput::Declare(Flags& flags) {
  flags.Text("-o,--output", &text_, "FORMAT", "output format: json, yaml or jsonpath=TEMPLATE");
}

Status ViewOutput::Check() {
  auto form = ParseOutputForm(text_);
  using Kind = OutputForm::Kind;
  const bool known = form.ok() && (text_.empty() || form->kind == Kind::kJson ||
                                   form->kind == Kind::kYaml || form->kind == Kind::kJsonPath);
  if (!known && !text_.starts_with("jsonpath")) {
    return Misuse(StrCat("--output ", Quote(text_), ": expected json, yaml or jsonpath=TEMPLATE"));
  }
  if (!form.ok()) return form.status();
  form_ = std::move(*form);
  return Status::Ok();
}

void ViewOutput::Print(Session& session, const json::Value& document) const {
  session.Out(FormatObject(form_, document, ""));
}

bool ViewOutput::PrintLine(Session& session, const json::Value& document) const {
  if (form_.kind == OutputForm::Kind::kJson) return session.OutLine(json::Print(document));
  const std::string_view before = form_.kind == OutputForm::Kind::kYaml ? "---\n" : "";
  return session.Out(StrCat(before, FormatObject(form_, document, "")));
}

}  // namespace swell::cli
