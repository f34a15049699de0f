// swell ui: opens the pages of the cluster in the browser, logged in as oneself.
#include "base/strings.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "json/value.h"

namespace swell::cli {
namespace {

class UiAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--data-dir", &data_dir_, "DIR",
               "data directory of the cluster (default: the cluster of the kubeconfig)");
    flags.Switch("--print", &print_, "print the address; do not open a browser");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (!data_dir_.empty()) session.UseKubeconfig(StrCat(data_dir_, "/kubeconfig"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    auto made = api->CallObject({.method = "POST", .path = "/swell/v1/pages/codes", .body = "{}"});
    if (!made.ok()) return Explain(made.status(), api->connection().url);
    const std::string url =
        StrCat(json::GetString(**made, {"url"}), "#code=", json::GetString(**made, {"code"}));
    if (!print_ && session.env().open_url && session.env().open_url(url)) {
      session.OutLine(
          StrCat("The pages are open in the browser: ", json::GetString(**made, {"url"})));
      return 0;
    }
    session.OutLine(url);
    session.ErrLine(StrCat("Open this address in a browser of this machine. It is good once, for ",
                           json::GetInt(**made, {"expiresSeconds"}), " seconds."));
    return 0;
  }

 private:
  static Status Explain(const Status& status, const std::string& url) {
    if (status.code() != Code::kNotFound && status.code() != Code::kMethodNotAllowed) return status;
    return Status(Code::kNotFound, StrCat("the cluster at ", url,
                                          " makes no codes for its pages; an embedded "
                                          "cluster does unless it was started with swell up "
                                          "--ui-address off; elsewhere log in with a token at the "
                                          "address of swell controller --ui-address"));
  }

  std::string data_dir_;
  bool print_ = false;
};

}  // namespace

Command UiCommandSpec() {
  return {
      .name = "ui",
      .group = "Cluster",
      .summary = "Open the cluster's pages in the browser.",
      .examples = {{"Open the pages, logged in", "swell ui"},
                   {"Print the address for another browser", "swell ui --print"}},
      .make = Makes<UiAction>(),
  };
}

}  // namespace swell::cli
