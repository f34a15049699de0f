// The commands, one factory each. Each is complete in its own file.
// - Threads: a command runs on the thread of main().
#pragma once

#include "cli/command.h"

namespace swell::cli {

Command GetCommandSpec();
Command ListCommandSpec();
Command DescribeCommandSpec();
Command LogsCommandSpec();
Command ExecCommandSpec();
// `gives_terminal`: to a program that has a terminal, without flags.
Command AttachCommandSpec(bool gives_terminal = false);
Command PortForwardCommandSpec();
Command CpCommandSpec();
Command EventsCommandSpec();
Command TopCommandSpec();
Command SubmitCommandSpec();
Command ApplyCommandSpec();
Command CreateCommandSpec();
Command DeleteCommandSpec();
Command SuspendCommandSpec();
Command ResumeCommandSpec();
Command ScaleCommandSpec();
Command WaitCommandSpec();
Command WhyCommandSpec();
Command HealthCommandSpec();
Command StacksCommandSpec();
Command SnapshotCommandSpec();
Command ReportCommandSpec();
Command ExportCommandSpec();
Command ImportCommandSpec();
Command UiCommandSpec();
Command AuditCommandSpec();
Command VersionCommandSpec();
Command CompletionCommandSpec(const std::string& program);
Command CompleteCommandSpec();  // hidden: what completion scripts ask
Command ConfigCommandSpec();
// Of `swell` and of `runai`, which is named in the examples.
Command ProjectCommandSpec(const std::string& program);
Command NodePoolCommandSpec(const std::string& program);

// The whole of `arena`, of `runai`, of `elasticdl`, of `slurm`.
Command ArenaRoot();
Command RunaiRoot();
Command ElasticdlRoot();
Command SlurmRoot();

}  // namespace swell::cli
