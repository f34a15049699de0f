#include "kube/images/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/images/reference.h"
#include "kube/images/registries.h"
#include "kube/images/shared_library.h"

namespace swell::images {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kRedirectsMax = 5;
constexpr size_t kHeadersMax = 200;
constexpr size_t kErrorBodyMax = 64 << 10;
constexpr std::string_view kUnknownHost = "UnknownHost";
constexpr std::string_view kTlsFailure = "TLS handshake failed: ";

// libcurl's functions, found when the first request is sent.
struct Curl {
  decltype(curl_global_init)* global_init;
  decltype(curl_easy_init)* init;
  decltype(curl_easy_setopt)* setopt;
  decltype(curl_easy_perform)* perform;
  decltype(curl_easy_getinfo)* getinfo;
  decltype(curl_easy_cleanup)* cleanup;
  decltype(curl_easy_strerror)* strerror;
  decltype(curl_slist_append)* slist_append;
  decltype(curl_slist_free_all)* slist_free_all;
};

Result<Curl> LoadCurl() {
  SWELL_ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::Open("libcurl.so.4", "libcurl4"));
  Curl curl;
  library.Find("curl_global_init", curl.global_init);
  library.Find("curl_easy_init", curl.init);
  library.Find("curl_easy_setopt", curl.setopt);
  library.Find("curl_easy_perform", curl.perform);
  library.Find("curl_easy_getinfo", curl.getinfo);
  library.Find("curl_easy_cleanup", curl.cleanup);
  library.Find("curl_easy_strerror", curl.strerror);
  library.Find("curl_slist_append", curl.slist_append);
  library.Find("curl_slist_free_all", curl.slist_free_all);
  SWELL_RETURN_IF_ERROR(library.Check());
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Status(Code::kUnavailable, "libcurl cannot be started");
  }
  return curl;
}

const Result<Curl>& LoadedCurl() {
  static const Result<Curl> curl = LoadCurl();
  return curl;
}

struct Handle {
  explicit Handle(const Curl& loaded) : curl(loaded), easy(loaded.init()) {}
  ~Handle() {
    if (easy != nullptr) curl.cleanup(easy);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const Curl& curl;
  CURL* easy;
};

struct HeaderList {
  explicit HeaderList(const Curl& loaded) : curl(loaded) {}
  ~HeaderList() { curl.slist_free_all(list); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  const Curl& curl;
  curl_slist* list = nullptr;
};

struct Transfer {
  const HttpRequest& request;
  HttpAnswer& answer;
  const Curl& curl;
  CURL* easy;
  bool too_large = false;
  bool stopped = false;
};

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size);
  // Those of the last answer count, after all redirects.
  if (line.starts_with("HTTP/")) transfer.answer.headers.clear();
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && transfer.answer.headers.size() < kHeadersMax) {
    transfer.answer.headers[ToLower(Trim(line.substr(0, colon)))] =
        std::string(Trim(line.substr(colon + 1)));
  }
  return size;
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  transfer.curl.getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  const std::string_view bytes(data, size);
  const bool good = status == 200 || status == 206;
  if (good && transfer.request.on_body) {
    transfer.stopped = !transfer.request.on_body(static_cast<int>(status), bytes);
    return transfer.stopped ? 0 : size;
  }
  std::string& body = transfer.answer.body;
  const size_t limit = good ? transfer.request.body_bytes_max : kErrorBodyMax;
  if (body.size() + size > limit) {
    transfer.too_large = good;
    return good ? 0 : size;
  }
  body += bytes;
  return size;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(user);
  return transfer.request.cancelled != nullptr && transfer.request.cancelled->load() ? 1 : 0;
}

bool IsConnectFailure(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_URL_MALFORMAT;
}

Status Describe(const Transfer& transfer, CURLcode code, const char* detail) {
  if (transfer.too_large) {
    return Status(Code::kTooLarge,
                  StrCat("the answer has more than ", transfer.request.body_bytes_max, " bytes"));
  }
  if (transfer.stopped) return Status(Code::kUnavailable, "the transfer was stopped");
  const std::string why = *detail != '\0' ? detail : transfer.curl.strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Status(Code::kTimeout,
                    StrCat("no answer from ", HostOf(transfer.request.url), " for ",
                           static_cast<int64_t>(transfer.request.stall.count()), " s"));
    case CURLE_ABORTED_BY_CALLBACK:
      return Status(Code::kUnavailable, "the pull was stopped");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: {
      StatusDetails details;
      details.causes.push_back({std::string(kUnknownHost), "", ""});
      return Status(Code::kUnavailable, why, std::move(details));
    }
    case CURLE_SSL_CONNECT_ERROR:
      return Status(Code::kUnavailable, StrCat(kTlsFailure, why));
    default:
      return Status(Code::kUnavailable, why);
  }
}

}  // namespace

bool IsUnknownHost(const Status& status) {
  const std::vector<StatusCause>& causes = status.details().causes;
  return causes.size() == 1 && causes[0].reason == kUnknownHost;
}

bool IsTlsFailure(const Status& status) { return status.message().starts_with(kTlsFailure); }

Status SendHttp(const HttpRequest& request, HttpAnswer& answer) {
  const Result<Curl>& loaded = LoadedCurl();
  if (!loaded.ok()) return loaded.status();
  const Curl& curl = *loaded;
  const Handle handle(curl);
  if (handle.easy == nullptr) return Status(Code::kUnavailable, "libcurl cannot be started");
  answer = HttpAnswer();
  Transfer transfer{request, answer, curl, handle.easy};
  char detail[CURL_ERROR_SIZE] = "";
  HeaderList headers(curl);
  for (const std::string& header : request.headers) {
    headers.list = curl.slist_append(headers.list, header.c_str());
  }
  auto set = [&](CURLoption option, auto value) { curl.setopt(handle.easy, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kRedirectsMax);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "swell");
  set(CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, static_cast<long>(request.stall.count())));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall.count()));
  set(CURLOPT_BUFFERSIZE, 512L << 10);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(detail));
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set(CURLOPT_XFERINFODATA, &transfer);
  if (request.offset > 0) {
    set(CURLOPT_RANGE, StrCat(request.offset, "-").c_str());
  }
  if (!request.user.empty()) {
    set(CURLOPT_USERNAME, request.user.c_str());
    set(CURLOPT_PASSWORD, request.password.c_str());
  }
  if (!request.form.empty()) set(CURLOPT_POSTFIELDS, request.form.c_str());
  if (!request.ca_file.empty()) set(CURLOPT_CAINFO, request.ca_file.c_str());
  if (request.insecure) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  // A proxy of this machine cannot reach its loopback.
  if (IsLoopback(std::string(HostOf(request.url)))) set(CURLOPT_NOPROXY, "*");
  const CURLcode code = curl.perform(handle.easy);
  long status = 0;
  curl.getinfo(handle.easy, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  answer.connected = !IsConnectFailure(code);
  return code == CURLE_OK ? Status::Ok() : Describe(transfer, code, detail);
}

}  // namespace swell::images
