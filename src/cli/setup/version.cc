// swell version: of this program and of the cluster.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"

namespace swell::cli {
namespace {

class VersionAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--client", &client_only_, "version of this program only");
    flags.Text("-o,--output", &output_, "json|yaml", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    json::Value all = json::Object{{"client", json::Object{{"version", Version()}}}};
    Status server_says;
    if (!client_only_) {
      auto server = Ask(session);
      if (server.ok()) {
        json::Set(all, {"server"}, **server);
      } else {
        server_says = server.status();
      }
    }
    if (!output_.empty()) {
      SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
      session.Out(FormatObject(form, all, "version"));
      return 0;
    }
    session.OutLine(StrCat("swell   ", Version()));
    std::string_view server = json::GetString(all, {"server", "gitVersion"});
    if (!server.empty()) session.OutLine(StrCat("server  ", server));
    if (!server_says.ok() && server_says.code() != Code::kNotFound) return server_says;
    return 0;
  }

 private:
  static Result<json::SharedValue> Ask(Session& session) {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    return api->CallObject({.method = "GET", .path = "/version"});
  }
  bool client_only_ = false;
  std::string output_;
};

}  // namespace

Command VersionCommandSpec() {
  return {
      .name = "version",
      .group = "Other",
      .summary = "Print the versions of this program and of the cluster.",
      .examples = {{"Both versions", "swell version"},
                   {"This program only", "swell version --client"}},
      .make = Makes<VersionAction>(),
  };
}

}  // namespace swell::cli
