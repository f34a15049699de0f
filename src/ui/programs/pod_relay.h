// PodRelay: carries requests of browsers to the pods behind a Service, and their answers back, as
// the user of a session: through the API server's portforward of a ready pod, with the user's
// credentials. So the API server decides about each request, and pods are reached wherever it
// reaches them. Answers are passed on as they come; a slow browser holds its pod back.
//
// - Threads: Carry and EndSession on any thread. Constructor and destructor on the core thread, or
//   while nobody runs the core executor. HTTP is read there, too: that is where the stream is.
// - Ownership: core executor and server outlive it. Destroying it cuts what is under way.
// - Errors: the browser gets what the API server refused; 502 where no pod answers as it should,
//   504 where it takes longer than kHeadWithin, 429 beyond the bounds.
// - Invariants: at most kCallsMax requests are under way, kCallsPerSession of one session.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "kube/api/rest/rest.h"
#include "kube/net/http/server.h"
#include "ui/programs/program_headers.h"

namespace swell::ui {

// The session of a request, and the Service that it goes to.
struct RelayTarget {
  std::string session;
  api::Credentials credentials;
  std::string ns, service;
  ProgramPlace place;
};

class PodRelay {
 public:
  static constexpr size_t kCallsMax = 512;
  static constexpr size_t kCallsPerSession = 64;
  static constexpr Duration kHeadWithin = std::chrono::seconds(60);
  static constexpr Duration kSilenceMost = std::chrono::seconds(120);  // within an answer

  PodRelay(Executor& core, std::shared_ptr<api::RestHandler> server);
  ~PodRelay();
  PodRelay(const PodRelay&) = delete;
  PodRelay& operator=(const PodRelay&) = delete;

  // Answers the exchange. Its request is below the target's place.
  void Carry(std::shared_ptr<net::Exchange> exchange, RelayTarget target);
  // Cuts what is under way for it.
  void EndSession(const std::string& session);

 private:
  class Call;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace swell::ui
