// swell lab explain: one job's life in a run of a policy, in words.
#include "base/strings.h"
#include "lab/explain.h"
#include "ops/lab/lab_actions.h"
#include "ops/lab/lab_input.h"

namespace swell::ops {
namespace {

class ExplainAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    input_.Declare(flags);
    flags.Text("--policy", &policy_, "NAME", "policy to play (default goodput)");
    flags.Text("--job", &job_, "NAME", "name of the job in the trace");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (job_.empty()) return cli::Misuse("expected --job NAME: a job of the trace");
    if (words.size() > 1) return cli::Misuse(StrCat("unexpected ", Quote(words[1])));
    auto kind = lab::FindPolicy(policy_);
    if (!kind.ok()) return cli::Misuse(StrCat("--policy: ", kind.status().message()));
    SWELL_RETURN_IF_ERROR(input_.Read(session, words));
    SWELL_ASSIGN_OR_RETURN(const std::string text,
                           lab::ExplainJob(input_.traces().front(), input_.profiles(), **kind,
                                           input_.options(), job_));
    session.Out(text);
    for (const std::string& line : input_.Notes()) session.OutLine(line);
    return 0;
  }

 private:
  LabInput input_;
  std::string policy_ = "goodput";
  std::string job_;
};

}  // namespace

std::unique_ptr<cli::Action> MakeLabExplain() { return std::make_unique<ExplainAction>(); }

}  // namespace swell::ops
