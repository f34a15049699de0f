// swell config: which cluster the commands talk to.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"

namespace swell::cli {
namespace {

class ConfigViewAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "json|yaml", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const Connection& connection = api->connection();
    if (!output_.empty()) {
      SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
      json::Value value = json::Object{{"kubeconfig", connection.kubeconfig},
                                       {"context", connection.context},
                                       {"server", connection.url},
                                       {"namespace", session.Namespace()}};
      session.Out(FormatObject(form, value, "config"));
      return 0;
    }
    session.OutLine(StrCat("kubeconfig  ", connection.kubeconfig));
    session.OutLine(StrCat("context     ",
                           connection.context.empty() ? "(the current one)" : connection.context));
    session.OutLine(StrCat("server      ", connection.url));
    session.OutLine(StrCat("namespace   ", session.Namespace()));
    return 0;
  }

 private:
  std::string output_;
};

}  // namespace

Command ConfigCommandSpec() {
  Command config{
      .name = "config",
      .group = "Other",
      .summary = "Show which cluster the commands use.",
  };
  Command view{
      .name = "view",
      .summary = "Print the kubeconfig, server and namespace in use.",
      .examples = {{"The cluster in use", "swell config view"}},
      .make = Makes<ConfigViewAction>(),
  };
  config.children.push_back(std::move(view));
  return config;
}

}  // namespace swell::cli
