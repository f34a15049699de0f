// arena serve: servers of trained models. Each version of one is a Deployment, with a Service, that
// carry the labels of Arena's charts. Servers that Arena itself made have them, and are found, too.
// - Threads: one thread; blocks on the session's loop.
#pragma once

#include <string>
#include <vector>

#include "cli/arena/arena.h"
#include "cli/views/workloads.h"

namespace swell::cli::arena {

// A type of server.
struct ServingType {
  std::string_view word;                // as the label and --type have it: tf-serving
  std::string_view shown;               // Tensorflow
  std::vector<std::string_view> names;  // after `arena serve`, and shorter words for --type
  std::string_view chart;               // Arena's; ends the names of its objects
  bool bare_service = false;            // but not that of its Service

  std::string NameOf(const std::string& server, const std::string& version) const;
};
const std::vector<ServingType>& ServingTypes();
const ServingType& ServingTypeNamed(std::string_view word);

inline constexpr std::string_view kServingType = "servingType";
inline constexpr std::string_view kServingVersion = "servingVersion";
// By these arena tells servers, and their pods, apart.
inline constexpr std::string_view kServerLabels[] = {"app",        "release",      "heritage",
                                                     "chart",      "serviceName",  kServingName,
                                                     kServingType, kServingVersion};
// Ports of its Service.
inline constexpr std::string_view kGrpcPort = "grpc-serving";
inline constexpr std::string_view kRestPort = "http-serving";
inline constexpr std::string_view kMetricsPort = "metrics";

// One version of a server.
struct Serving {
  json::SharedValue deployment;
  json::SharedValue service;  // null: it has none

  std::string_view name() const;
  std::string_view version() const;
  std::string_view type() const;  // tf-serving
  std::string_view ns() const;
  std::string Shown() const;  // "bert with version v1"
};

// "--type" and "--version", which choose among servers of one name.
class ServingFilter {
 public:
  void Declare(Flags& flags, bool version = true);
  // As if --type were given.
  void Set(const ServingType& type) { type_ = &type; }
  Status Check();
  // The label selector of those that it lets through. `name` empty: of any name.
  std::string Selector(std::string_view name) const;

 private:
  std::string type_said_, version_;
  const ServingType* type_ = nullptr;
};

// How many more and how many fewer replicas there may be during an update.
struct UpdatePace {
  std::string max_surge, max_unavailable;

  void Declare(Flags& flags);
  // A value that is not set leaves the Deployment's as it is.
  void Set(json::Value& deployment) const;
};

// `ns` empty: all namespaces, or those of the user.
Result<std::vector<Serving>> ListServings(Session& session,
                                          Api& api,
                                          const std::string& ns,
                                          const std::string& selector);
// The server of that name. kNotFound in words; kBadRequest naming the versions if there are
// several.
Result<Serving> FindServing(Session& session,
                            Api& api,
                            const std::string& name,
                            const ServingFilter& filter);
Result<std::vector<json::SharedValue>> PodsOf(Api& api, const Serving& serving);

// arena serve custom, tensorflow, triton.
std::vector<Command> ServeStartSpecs();
// arena serve update.
Command ServeUpdateSpec();

}  // namespace swell::cli::arena
