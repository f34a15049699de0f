#include "ops/pages/controller_pages.h"

#include <utility>

#include "base/host_port.h"
#include "cli/flags.h"

namespace swell::ops {

void AddControllerPagesFlags(cli::Flags& flags, ControllerPagesOptions& to) {
  flags.Text("--ui-address", &to.address, "HOST:PORT|off",
             "also serve the pages at this address, with TLS except on loopback addresses "
             "(default off)");
  flags.Text("--ui-programs-address", &to.programs_address, "HOST:PORT|off",
             "also serve, at this address, the programs of pods that the pages open, such as "
             "TensorBoard (default off)");
  flags.Text("--ui-cert-file", &to.certificate.cert, "FILE",
             "certificate of the pages, with --ui-key-file (default: one made at each start)");
  flags.Text("--ui-key-file", &to.certificate.key, "FILE", "private key of the pages");
  flags.Text("--ui-history-file", &to.history_file, "FILE",
             "keep the history of the pages in this file (default: in memory)");
}

Status CheckControllerPages(const ControllerPagesOptions& options) {
  if (options.certificate.cert.empty() != options.certificate.key.empty()) {
    return cli::Misuse("--ui-cert-file and --ui-key-file belong together: give both");
  }
  if (options.on()) return CheckPagesAddresses(options.address, options.programs_address);
  const bool needs_pages = !options.certificate.cert.empty() || !options.history_file.empty() ||
                           options.programs_address != kOff;
  if (!needs_pages) return Status::Ok();
  return cli::Misuse(
      "--ui-programs-address, --ui-cert-file and --ui-history-file need --ui-address");
}

ControllerPages::ControllerPages(RemoteProcess& process,
                                 std::shared_ptr<api::RestHandler> callers,
                                 const std::string& history_file,
                                 Metrics& metrics)
    : informers_(process.core(), process.server(), {}, process.random().Next()),
      pages_(process.core(),
             process.clock(),
             {.server = process.server(), .callers = std::move(callers), .metrics = &metrics},
             history_file) {}

Result<std::unique_ptr<ControllerPages>> ControllerPages::Start(
    RemoteProcess& process,
    const ControllerPagesOptions& options,
    const std::string& ns,
    Metrics& metrics) {
  SWELL_ASSIGN_OR_RETURN(
      std::shared_ptr<api::RestHandler> callers,
      edge::HttpTransport::Make(process.core(), edge::CallersConfig(process.access())));
  std::unique_ptr<ControllerPages> made(
      new ControllerPages(process, std::move(callers), options.history_file, metrics));
  PagesOptions pages{.address = options.address, .programs_address = options.programs_address};
  if (!IsLoopback(options.address)) {
    SWELL_ASSIGN_OR_RETURN(net::CertificatePair pair,
                           PagesCertificate(options.certificate, ns, process.clock()));
    pages.cert_pem = std::move(pair.cert_pem);
    pages.key_pem = std::move(pair.key_pem);
  }
  SWELL_RETURN_IF_ERROR(made->pages_.Listen(pages, process.random()));
  made->pages_.Start(made->informers_, process.random().Next());
  return made;
}

}  // namespace swell::ops
