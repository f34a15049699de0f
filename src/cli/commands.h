// The commands, one factory each. Each is complete in its own file.
#pragma once

#include "cli/command.h"

namespace swell::cli {

Command GetCommandSpec();
Command ListCommandSpec();
Command DescribeCommandSpec();
Command LogsCommandSpec();
Command EventsCommandSpec();
Command TopCommandSpec();
Command SubmitCommandSpec();
Command ApplyCommandSpec();
Command CreateCommandSpec();
Command DeleteCommandSpec();
Command SuspendCommandSpec();
Command ResumeCommandSpec();
Command WaitCommandSpec();
Command VersionCommandSpec();
Command CompletionCommandSpec(const std::string& program);
Command CompleteCommandSpec();  // hidden: what completion scripts ask
Command ConfigCommandSpec();

// The whole of `arena`.
Command ArenaRoot();

}  // namespace swell::cli
