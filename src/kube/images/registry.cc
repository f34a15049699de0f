#include "kube/images/registry.h"

#include <algorithm>
#include <utility>

#include "base/percent.h"
#include "base/strings.h"
#include "json/value.h"

namespace swell::images {
namespace {

constexpr int kTransfersMax = 200;                  // of one blob, each of which brought some bytes
constexpr std::chrono::seconds kRetryAfterMax(10);  // that a pull waits for
constexpr int64_t kRetryAfterSecondsMax = 86'400;
constexpr std::string_view kAccepted =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

// What a registry says of an error in the protocol's form. Other text is not shown: another program
// may have sent it, which who named the image cannot ask itself.
std::string Reason(const HttpAnswer& answer) {
  if (answer.elsewhere) return StrCat("HTTP status ", answer.status, " of another host");
  auto value = json::Parse(answer.body, {.bytes = 64 << 10});
  std::string out;
  if (value.ok()) {
    const json::Array& errors = json::GetArray(*value, {"errors"});
    if (!errors.empty()) {
      out = StrCat(json::GetString(errors[0], {"code"}), ": ",
                   json::GetString(errors[0], {"message"}));
    } else {
      out = json::GetString(*value, {"details"}, json::GetString(*value, {"message"}));
    }
  }
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return out.empty() || !IsValidUtf8(out) ? StrCat("HTTP status ", answer.status)
                                          : StrCat(out, " (HTTP status ", answer.status, ")");
}

bool IsTransient(int status) { return status == 429 || status == 408 || status >= 500; }

// Whether another place may do better: also where this one sent other bytes than the digest says.
// Errors of this machine's disk are not among them.
bool IsOfPlace(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kTooManyRequests:
    case Code::kNotFound:
    case Code::kUnauthorized:
    case Code::kForbidden:
    case Code::kInvalid:
      return true;
    default:
      return false;
  }
}

std::string HeaderOf(const HttpAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

// When the server wants to be asked again; 0: it does not say.
std::chrono::seconds RetryAfter(const HttpAnswer& answer) {
  const auto after = ParseInt(HeaderOf(answer, "retry-after"));
  return std::chrono::seconds(after ? std::clamp<int64_t>(*after, 0, kRetryAfterSecondsMax) : 0);
}

std::string WithoutScheme(const std::string& url) { return url.substr(url.find("://") + 3); }

}  // namespace

std::map<std::string, std::string> ParseChallenge(std::string_view header) {
  std::map<std::string, std::string> out;
  size_t at = 0;
  while (at < header.size() && out.size() < 32) {
    const size_t equals = header.find('=', at);
    if (equals == std::string_view::npos) break;
    const std::string name = ToLower(Trim(header.substr(at, equals - at)));
    at = equals + 1;
    std::string value;
    if (at < header.size() && header[at] == '"') {
      for (++at; at < header.size() && header[at] != '"'; ++at) {
        if (header[at] == '\\' && at + 1 < header.size()) ++at;
        value += header[at];
      }
      ++at;
    } else {
      const size_t end = std::min(header.find(',', at), header.size());
      value = Trim(header.substr(at, end - at));
      at = end;
    }
    out[name] = value;
    while (at < header.size() && (header[at] == ',' || header[at] == ' ')) ++at;
  }
  return out;
}

Registry::Registry(Reference image,
                   std::vector<Endpoint> endpoints,
                   std::vector<Credential> credentials,
                   RegistryOptions options,
                   const Cancellation& cancel)
    : image_(std::move(image)),
      endpoints_(std::move(endpoints)),
      credentials_(std::move(credentials)),
      options_(options),
      cancel_(cancel) {}

Registry::Session Registry::CurrentSession() const {
  MutexLock lock(mutex_);
  return session_;
}

std::string Registry::credential() const {
  const Session session = CurrentSession();
  return session.credential == nullptr ? "" : session.credential->Fingerprint();
}

HttpRequest Registry::MakeRequest(const Session& session, const std::string& path) const {
  HttpRequest request;
  request.url = StrCat(session.endpoint.url, "/v2/", image_.path, path);
  request.ca_file = session.endpoint.ca_file;
  request.insecure = session.endpoint.insecure;
  request.inside_allowed = session.endpoint.listed;
  request.stall = options_.stall;
  request.cancelled = &cancel_.flag();
  return request;
}

// ---- manifests ----

Result<std::string> Registry::Top() {
  auto top = AskFrom(0, image_.Wanted());
  if (!top.ok()) return top;
  net::Sha256 hash;
  hash.Add(*top);
  top_digest_ = StrCat("sha256:", hash.Hex());
  return top;
}

Result<std::string> Registry::AskFrom(size_t place, const std::string& wanted) {
  Status last;
  for (; place < endpoints_.size(); ++place) {
    const Endpoint& endpoint = endpoints_[place];
    std::vector<const Credential*> tries;
    if (!endpoint.mirror) {
      for (const Credential& one : credentials_) tries.push_back(&one);
    }
    tries.push_back(nullptr);
    // What the best credential was told says more than what nobody was told.
    Status refused;
    for (const Credential* credential : tries) {
      auto got = AskAt({.endpoint = endpoint, .place = place, .credential = credential}, wanted);
      if (got.ok()) return got;
      last = got.status();
      if (refused.ok()) refused = last;
      const bool denied = last.code() == Code::kUnauthorized || last.code() == Code::kForbidden ||
                          last.code() == Code::kNotFound;
      if (!denied) break;
    }
    if (!refused.ok()) last = refused;
    SWELL_RETURN_IF_ERROR(cancel_.Check());
  }
  return last;
}

Result<std::string> Registry::AskAt(Session session, const std::string& wanted) {
  auto got = GetManifest(session, wanted);
  if (!got.ok() && session.endpoint.insecure && IsTlsFailure(got.status())) {
    session.endpoint.url.replace(0, session.endpoint.url.find("://"), "http");
    got = GetManifest(session, wanted);
  }
  if (!got.ok()) return got;
  MutexLock lock(mutex_);
  session_ = std::move(session);
  return got;
}

Result<std::string> Registry::ManifestOf(const Descriptor& item) {
  while (true) {
    Session session = CurrentSession();
    auto got = GetManifest(session, item.digest);
    if (got.ok() || !session.endpoint.mirror || !IsOfPlace(got.status())) return got;
    SWELL_RETURN_IF_ERROR(LeaveMirror(session.place));
  }
}

Result<std::string> Registry::GetManifest(Session& session, const std::string& wanted) {
  HttpRequest request = MakeRequest(session, "/manifests/" + wanted);
  request.headers = {std::string(kAccepted)};
  request.body_bytes_max = kManifestBytesMax;
  HttpAnswer answer;
  SWELL_RETURN_IF_ERROR(Send(session, request, answer));
  if (answer.status != 200) return Explain(session, answer);
  if (IsDigest(wanted)) {
    net::Sha256 hash;
    hash.Add(answer.body);
    if (hash.Hex() != DigestHex(wanted)) {
      return Status(Code::kInvalid, StrCat(WithoutScheme(session.endpoint.url),
                                           " sent another manifest "
                                           "than ",
                                           wanted));
    }
  }
  return std::move(answer.body);
}

Status Registry::Explain(const Session& session, const HttpAnswer& answer) const {
  StatusDetails later;
  later.retry_after_s = static_cast<int>(RetryAfter(answer).count());
  const std::string who = WithoutScheme(session.endpoint.url), why = Reason(answer);
  const std::string what = image_.Name();
  const bool person = options_.puller == Puller::kPerson;
  switch (answer.status) {
    case 401:
    case 403:
      return Status(
          answer.status == 401 ? Code::kUnauthorized : Code::kForbidden,
          session.credential == nullptr
              ? StrCat(who, " gives ", what, " only with credentials, or has no such image; ",
                       person ? "log in with docker login, or name a file of credentials "
                                "with --docker-config"
                              : "name a Secret in imagePullSecrets",
                       ". It says: ", why)
              : StrCat(who, " does not give ", what, " to user ", Quote(session.credential->user),
                       ". It says: ", why));
    case 404:
      return Status(Code::kNotFound, StrCat(who, " has no image ", what, ". It says: ", why));
    case 429:
      return Status(
          Code::kTooManyRequests,
          StrCat(who, " was asked too often; ", person ? "try again " : "it is asked again ",
                 later.retry_after_s > 0 ? StrCat("after ", later.retry_after_s, " s") : "later",
                 ". It says: ", why),
          std::move(later));
    default: {
      // What servers that speak TLS answer to plain HTTP.
      const bool wants_tls = answer.status == 400 && session.endpoint.url.starts_with("http://");
      return Status(Code::kUnavailable,
                    StrCat(who, " cannot serve ", what, ". It says: ", why,
                           wants_tls ? ". It was asked over plain HTTP; if it speaks TLS, an "
                                       "administrator must list it in registries.yaml"
                                     : ""),
                    std::move(later));
    }
  }
}

// ---- requests ----

// Another place can be asked sooner than a mirror recovers.
int Registry::AttemptsAt(const Session& session) const {
  return session.endpoint.mirror ? 1 : options_.attempts;
}

Status Registry::SendPatiently(const Session& session, HttpRequest request, HttpAnswer& answer) {
  auto wait = options_.retry_wait;
  for (int attempt = 1;; ++attempt) {
    Status sent = SendHttp(request, answer);
    const bool again = sent.ok() ? IsTransient(answer.status) : answer.connected;
    if (!again || attempt >= AttemptsAt(session)) return sent;
    const std::chrono::seconds after = RetryAfter(answer);
    if (after > kRetryAfterMax) return sent;
    if (!cancel_.Wait(after.count() > 0 ? after : wait)) return cancel_.Check();
    wait *= 2;
  }
}

Status Registry::Send(Session& session, HttpRequest request, HttpAnswer& answer) {
  const auto plain_headers = request.headers;
  for (int round = 0;; ++round) {
    request.headers = plain_headers;
    if (!session.token.empty()) request.headers.push_back("Authorization: " + session.token);
    if (session.basic) {
      request.user = session.credential->user;
      request.password = session.credential->password;
    }
    // What was received of a blob must not be asked for again: Fetch continues behind it.
    SWELL_RETURN_IF_ERROR(request.on_body ? SendHttp(request, answer)
                                          : SendPatiently(session, request, answer));
    if (answer.status != 401 || round > 0) return Status::Ok();
    const std::string challenge = HeaderOf(answer, "www-authenticate");
    const std::string scheme = ToLower(challenge.substr(0, challenge.find(' ')));
    if (scheme == "bearer") {
      SWELL_RETURN_IF_ERROR(GetToken(session, challenge));
    } else if (scheme == "basic" && session.credential != nullptr && !session.basic) {
      session.basic = true;
    } else {
      return Status::Ok();  // 401 it is
    }
  }
}

Status Registry::GetToken(Session& session, const std::string& challenge) {
  auto parameters = ParseChallenge(std::string_view(challenge).substr(challenge.find(' ') + 1));
  const std::string realm = parameters["realm"];
  const std::string who = WithoutScheme(session.endpoint.url);
  if (!realm.starts_with("https://") && !realm.starts_with("http://")) {
    return Status(Code::kUnavailable,
                  StrCat(who, " names no place to get a token from: realm ", Quote(realm)));
  }
  const bool weaker = session.endpoint.url.starts_with("https://") && realm.starts_with("http://");
  if (weaker && session.credential != nullptr && !session.endpoint.insecure) {
    return Status(Code::kUnavailable,
                  StrCat(who, " wants the password sent without encryption to ", realm));
  }
  std::string scope = parameters["scope"];
  if (scope.empty()) scope = StrCat("repository:", image_.path, ":pull");
  const std::string query =
      StrCat("service=", PercentEncode(parameters["service"]), "&scope=", PercentEncode(scope));
  HttpRequest request = MakeRequest(session, "");
  request.url = StrCat(realm, realm.find('?') == std::string::npos ? "?" : "&", query);
  const bool own = HostOfUrl(realm) == HostOfUrl(session.endpoint.url);
  request.named_by_others = !own;
  if (const Credential* credential = session.credential; credential != nullptr) {
    if (credential->identity_token.empty()) {
      request.user = credential->user;
      request.password = credential->password;
    } else {
      request.url = realm;
      request.form = StrCat("grant_type=refresh_token&client_id=swell&", query,
                            "&refresh_token=", PercentEncode(credential->identity_token));
    }
  }
  HttpAnswer answer;
  Status sent = SendPatiently(session, request, answer);
  if (!sent.ok()) return sent.WithContext(StrCat("token from ", WithoutScheme(realm)));
  if (!own) answer.elsewhere = true;
  if (answer.status != 200) return Explain(session, answer);
  auto value = json::Parse(answer.body);
  std::string token;
  if (value.ok()) {
    token = json::GetString(*value, {"token"}, json::GetString(*value, {"access_token"}));
  }
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos) {
    return Status(Code::kUnavailable, StrCat(WithoutScheme(realm), " answered without a token"));
  }
  session.token = "Bearer " + token;
  return Status::Ok();
}

// ---- blobs ----

Status Registry::Fetch(const Descriptor& blob, PartFile& part) {
  if (part.size() > blob.size) SWELL_RETURN_IF_ERROR(part.Restart());
  while (true) {
    const Session session = CurrentSession();
    const bool all_from_here = part.size() == 0;
    Status fetched = FetchAt(session, blob, part);
    SWELL_RETURN_IF_ERROR(cancel_.Check());
    if (fetched.ok()) {
      SWELL_RETURN_IF_ERROR(part.Flush());
      fetched = part.Verify(blob);
    }
    if (fetched.ok()) return fetched;
    if (fetched.code() == Code::kInvalid) {
      SWELL_RETURN_IF_ERROR(part.Restart());
      if (!all_from_here) continue;  // the wrong bytes may be another place's
    }
    if (!session.endpoint.mirror || !IsOfPlace(fetched)) return fetched;
    // As with the manifest, what the last place says is told.
    SWELL_RETURN_IF_ERROR(LeaveMirror(session.place));
  }
}

Status Registry::LeaveMirror(size_t place) {
  if (CurrentSession().place != place) return Status::Ok();
  return AskFrom(place + 1, top_digest_).status();
}

Status Registry::FetchAt(const Session& session, const Descriptor& blob, PartFile& part) {
  auto wait = options_.retry_wait;
  int failures = 0;
  for (int transfer = 0; part.size() < blob.size; ++transfer) {
    const int64_t before = part.size();
    Status fetched = FetchOnce("/blobs/" + blob.digest, blob, part);
    if (part.size() == blob.size) break;
    SWELL_RETURN_IF_ERROR(cancel_.Check());
    if (fetched.ok()) {
      fetched = Status(Code::kUnavailable, StrCat("the connection ended after ", part.size(),
                                                  " of ", blob.size, " bytes"));
    }
    const bool final = fetched.code() != Code::kUnavailable && fetched.code() != Code::kTimeout &&
                       fetched.code() != Code::kTooManyRequests;
    failures = part.size() > before ? 0 : failures + 1;
    if (failures <= 1) wait = options_.retry_wait;
    if (final || failures >= AttemptsAt(session) || transfer >= kTransfersMax) return fetched;
    const std::chrono::seconds after(fetched.details().retry_after_s);
    if (after > kRetryAfterMax) return fetched;
    if (!cancel_.Wait(after.count() > 0 ? after : wait)) return cancel_.Check();
    wait *= 2;
  }
  return Status::Ok();
}

Status Registry::FetchOnce(const std::string& url, const Descriptor& blob, PartFile& part) {
  Session session = CurrentSession();
  HttpRequest request = MakeRequest(session, url);
  request.offset = part.size();
  Status written;
  bool begun = false;
  request.on_body = [&](int status, std::string_view bytes) {
    // A server without ranges sends all of it again.
    if (!begun && status == 200 && part.size() > 0) written = part.Restart();
    begun = true;
    if (written.ok() && part.size() + static_cast<int64_t>(bytes.size()) > blob.size) {
      written = Status(Code::kInvalid, StrCat("blob ", blob.digest, " is longer than the ",
                                              blob.size, " bytes its manifest says"));
    }
    if (written.ok()) written = part.Append(bytes);
    return written.ok();
  };
  HttpAnswer answer;
  const std::string token = session.token;
  Status sent = Send(session, request, answer);
  if (session.token != token) {
    MutexLock lock(mutex_);
    if (session_.place == session.place) session_.token = session.token;
  }
  SWELL_RETURN_IF_ERROR(written);
  if (!sent.ok()) return sent;
  if (answer.status == 416) return part.Restart();
  return answer.status == 200 || answer.status == 206 ? Status::Ok() : Explain(session, answer);
}

}  // namespace swell::images
