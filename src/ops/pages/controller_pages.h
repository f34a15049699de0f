// ControllerPages: the pages of `swell controller`, on each replica. They watch with the process's
// credentials and act with those of the person who looks.
// - Threads: as ClusterPages.
// - Ownership: the process and the metrics outlive it.
#pragma once

#include <memory>
#include <string>

#include "ops/pages/cluster_pages.h"
#include "ops/pages/pages_certificate.h"
#include "ops/remote_process.h"

namespace swell::ops {

struct ControllerPagesOptions {
  std::string address{kOff};
  std::string programs_address{kOff};
  CertificateFiles certificate;
  std::string history_file;  // empty: the history is kept in memory
  bool on() const { return !address.empty() && address != kOff; }
};
void AddControllerPagesFlags(cli::Flags& flags, ControllerPagesOptions& to);
// Misuse names the flag.
Status CheckControllerPages(const ControllerPagesOptions& options);

class ControllerPages {
 public:
  // `ns`: that of the pages' Service, for a certificate that is made.
  static Result<std::unique_ptr<ControllerPages>> Start(RemoteProcess& process,
                                                        const ControllerPagesOptions& options,
                                                        const std::string& ns,
                                                        Metrics& metrics);
  const std::string& url() const { return pages_.url(); }

 private:
  ControllerPages(RemoteProcess& process,
                  std::shared_ptr<api::RestHandler> callers,
                  const std::string& history_file,
                  Metrics& metrics);

  // The pages' own: a replica drops its informers when it stops leading.
  controllers::Informers informers_;
  ClusterPages pages_;
};

}  // namespace swell::ops
