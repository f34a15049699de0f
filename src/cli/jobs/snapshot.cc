// swell snapshot: the state that scheduling depends on, for `swell simulate` and for the record.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/jobs/what_if.h"
#include "cli/print/output.h"

namespace swell::cli {
namespace {

class SnapshotAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "json|yaml", "output format (default json)");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (output_ != "json" && output_ != "yaml") {
      return WrongValue("--output", output_, {"json", "yaml"});
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(json::Array state, ReadState(*api));
    session.Out(FormatObject(
        form, json::Object{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(state)}},
        "snapshot"));
    return 0;
  }

 private:
  std::string output_ = "json";
};

}  // namespace

Command SnapshotCommandSpec() {
  Command command{
      .name = "snapshot",
      .group = "Scheduling",
  };
  command.summary = "Print the state that the scheduler uses: nodes, pods, pod groups, projects.";
  command.examples = {{"Simulate the next scheduling cycle",
                       "swell snapshot > state.json && swell simulate state.json"}};
  command.make = Makes<SnapshotAction>();
  return command;
}

}  // namespace swell::cli
