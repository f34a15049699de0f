#include "cli/api.h"

#include <utility>

#include "base/strings.h"
#include "cli/cli.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr Duration kQuietFor = std::chrono::seconds(2);
constexpr Duration kForEver = std::chrono::hours(24 * 365);
constexpr int64_t kPageSize = 500;
constexpr std::string_view kPatchTypes[] = {
    "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml"};

Status Interrupted() { return Status(Code::kTimeout, "interrupted"); }

Result<json::SharedValue> ParseObject(const api::RestResponse& response) {
  auto parsed = json::Parse(response.BodyString(), {.bytes = 1 << 30});
  if (!parsed.ok()) return parsed.status().WithContext("the server's answer is not JSON");
  return json::SharedValue(std::make_shared<const json::Value>(std::move(*parsed)));
}

// Its path would be that of all objects.
Status CheckName(const Resource& resource, std::string_view name) {
  if (!name.empty()) return Status::Ok();
  return Status(Code::kInvalid, StrCat("the name of one of the ", resource.plural,
                                       " is empty; is a variable of the shell not set?"));
}

}  // namespace

std::string WriteOptions::Query() const {
  std::string query;
  auto add = [&query](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    query += StrCat(query.empty() ? "" : "&", key, "=", api::EscapeQuery(value));
  };
  add("fieldManager", field_manager);
  add("fieldValidation", field_validation);
  add("dryRun", dry_run ? "All" : "");
  return query;
}

Api::Api(CliEnv& env, Connection connection)
    : env_(env),
      connection_(std::move(connection)),
      client_(std::make_unique<client::Client>(env.loop->executor(),
                                               connection_.server,
                                               connection_.user,
                                               StrCat("swell/", Version()))) {}

Api::~Api() = default;

bool Api::Wait(const std::function<bool()>& done) {
  if (env_.loop->RunUntil(done, kQuietFor)) return true;
  if (interrupted()) return false;
  if (!env_.err_is_terminal) return env_.loop->RunUntil(done, kForEver);
  env_.err(StrCat("Waiting for ", connection_.url, " … (Ctrl-C to stop)"));
  bool answered = env_.loop->RunUntil(done, kForEver);
  env_.err("\r\033[K");
  return answered;
}

bool Api::Pause(Duration span) {
  bool over = false;
  TimerId timer = env_.loop->executor().After(span, [&over] { over = true; });
  env_.loop->RunUntil([&over] { return over; }, span + std::chrono::seconds(1));
  env_.loop->executor().Cancel(timer);
  return !interrupted();
}

std::vector<Result<api::RestResponse>> Api::CallAll(std::vector<api::RestRequest> requests) {
  struct Answers {
    std::vector<Result<api::RestResponse>> results;
    size_t left = 0;
  };
  auto answers = std::make_shared<Answers>();
  answers->left = requests.size();
  for (size_t i = 0; i < requests.size(); ++i) answers->results.emplace_back(Interrupted());
  for (size_t i = 0; i < requests.size(); ++i) {
    client_->Call(std::move(requests[i]), [answers, i](Result<api::RestResponse> result) {
      answers->results[i] = std::move(result);
      --answers->left;
    });
  }
  Wait([&] { return answers->left == 0; });
  return answers->results;
}

Result<api::RestResponse> Api::Call(api::RestRequest request) {
  std::vector<api::RestRequest> one;
  one.push_back(std::move(request));
  return std::move(CallAll(std::move(one))[0]);
}

Result<json::SharedValue> Api::CallObject(api::RestRequest request) {
  SWELL_ASSIGN_OR_RETURN(api::RestResponse response, Call(std::move(request)));
  return ParseObject(response);
}

Result<json::SharedValue> Api::Get(const Resource& resource,
                                   std::string_view ns,
                                   std::string_view name) {
  SWELL_RETURN_IF_ERROR(CheckName(resource, name));
  return CallObject({.method = "GET", .path = resource.Path(ns, name)});
}

Result<std::vector<json::SharedValue>> Api::List(const Resource& resource,
                                                 std::string_view ns,
                                                 const client::ListOptions& options) {
  std::vector<json::SharedValue> items;
  std::string token = options.continue_token;
  do {
    std::string query = StrCat("limit=", options.limit > 0 ? options.limit : kPageSize);
    auto add = [&query](std::string_view key, std::string_view value) {
      if (!value.empty()) query += StrCat("&", key, "=", api::EscapeQuery(value));
    };
    add("labelSelector", options.label_selector);
    add("fieldSelector", options.field_selector);
    add("continue", token);
    SWELL_ASSIGN_OR_RETURN(
        json::SharedValue list,
        CallObject({.method = "GET", .path = resource.Path(ns), .query = query}));
    std::string kind(api::KindOf(*list));
    if (kind.ends_with("List")) kind.resize(kind.size() - 4);
    for (const json::Value& item : api::Items(*list)) {
      auto copy = std::make_shared<json::Value>(item);
      // Items of a list may leave their kind to the list; printers want it.
      if (!json::Find(item, {"kind"})) {
        json::Set(*copy, {"kind"}, kind);
        json::Set(*copy, {"apiVersion"}, api::ApiVersionOf(*list));
      }
      items.push_back(std::move(copy));
    }
    token = api::ContinueToken(*list);
  } while (!token.empty());
  return items;
}

Result<json::SharedValue> Api::Create(const Resource& resource,
                                      std::string_view ns,
                                      const json::Value& object,
                                      const WriteOptions& options) {
  return CallObject({.method = "POST",
                     .path = resource.Path(ns),
                     .query = options.Query(),
                     .body = json::Print(object)});
}

Result<json::SharedValue> Api::Patch(const Resource& resource,
                                     std::string_view ns,
                                     std::string_view name,
                                     client::PatchType type,
                                     const json::Value& patch,
                                     const WriteOptions& options) {
  SWELL_RETURN_IF_ERROR(CheckName(resource, name));
  return CallObject({.method = "PATCH",
                     .path = resource.Path(ns, name),
                     .query = options.Query(),
                     .content_type = std::string(kPatchTypes[static_cast<int>(type)]),
                     .body = json::Print(patch)});
}

Result<json::SharedValue> Api::Delete(const Resource& resource,
                                      std::string_view ns,
                                      std::string_view name,
                                      int64_t grace_seconds,
                                      std::string_view propagation,
                                      bool dry_run) {
  SWELL_RETURN_IF_ERROR(CheckName(resource, name));
  json::Value body = json::Object{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (!propagation.empty()) json::Set(body, {"propagationPolicy"}, propagation);
  if (grace_seconds >= 0) json::Set(body, {"gracePeriodSeconds"}, grace_seconds);
  if (dry_run) json::Set(body, {"dryRun"}, json::Array{"All"});
  return CallObject({.method = "DELETE",
                     .path = resource.Path(ns, name),
                     .query = dry_run ? "dryRun=All" : "",
                     .body = json::Print(body)});
}

Status Api::Follow(std::vector<StreamRequest> streams, Duration limit) {
  struct Progress {
    size_t left = 0;
    bool enough = false;
    Status error;
  };
  auto progress = std::make_shared<Progress>();
  progress->left = streams.size();
  std::vector<std::unique_ptr<client::Stream>> open;
  for (StreamRequest& stream : streams) {
    client::StreamCallbacks callbacks;
    callbacks.on_chunk = [progress, on_data = std::move(stream.on_data)](const api::Chunk& chunk) {
      if (!progress->enough && !on_data(*chunk)) progress->enough = true;
    };
    callbacks.on_end = [progress, on_end = std::move(stream.on_end)](const Status& why) {
      if (!why.ok() && progress->error.ok()) progress->error = why;
      if (on_end) on_end(why);
      --progress->left;
    };
    open.push_back(client_->Open(std::move(stream.request), std::move(callbacks)));
  }
  env_.loop->RunUntil([&] { return progress->enough || progress->left == 0; }, limit);
  return progress->enough || interrupted() ? Status::Ok() : progress->error;
}

bool LineSplitter::Feed(std::string_view bytes, const std::function<bool(std::string_view)>& line) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      partial_ += bytes;
      if (partial_.size() < kLineBytesMax) return true;
      std::string piece = std::exchange(partial_, {});
      return line(piece);
    }
    if (partial_.empty()) {
      if (!line(bytes.substr(0, end))) return false;
    } else {
      partial_ += bytes.substr(0, end);
      std::string whole = std::exchange(partial_, {});
      if (!line(whole)) return false;
    }
    bytes.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace swell::cli
