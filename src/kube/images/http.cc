#include "kube/images/http.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/host_port.h"
#include "base/strings.h"
#include "kube/images/curl_library.h"
#include "kube/images/reference.h"

namespace swell::images {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kRedirectsMax = 5;
constexpr size_t kHeadersMax = 200;
constexpr size_t kErrorBodyMax = 64 << 10;
constexpr std::string_view kUnknownHost = "UnknownHost";
constexpr std::string_view kTlsFailure = "TLS handshake failed: ";
constexpr std::string_view kUntrusted = "its certificate is not trusted: ";

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
  int proxy_port = 0;
  bool guarded = false;  // it may not lead inside
  bool inside = false;   // it would have
  bool too_large = false;
  bool stopped = false;
  char detail[CURL_ERROR_SIZE] = "";  // what libcurl says of an error
};

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size);
  // Those of the last answer count, after all redirects.
  if (line.starts_with("HTTP/")) transfer.answer.headers.clear();
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && transfer.answer.headers.size() < kHeadersMax) {
    std::string& value = transfer.answer.headers[ToLower(Trim(line.substr(0, colon)))];
    // A server that takes passwords and tokens says so in two headers. Tokens serve everybody.
    const bool kept = ToLower(value).starts_with("bearer ");
    if (!kept) value = Trim(line.substr(colon + 1));
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

// The port of the proxy that the environment names; 0: there is none. What it leads to is its own
// affair: it is reached wherever it is.
int ProxyPort() {
  constexpr int kDefault = 1080;
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (value == nullptr || *value == '\0') continue;
    std::string_view text = value;
    while (text.ends_with('/')) text.remove_suffix(1);
    const auto port = ParseInt(text.substr(text.rfind(':') + 1));
    return port ? static_cast<int>(*port) : kDefault;
  }
  return 0;
}

int PortOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return address.sa_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : -1;
}

curl_socket_t OnOpen(void* user, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(user);
  const bool proxy = transfer.proxy_port > 0 && PortOf(address->addr) == transfer.proxy_port;
  if (transfer.guarded && !proxy && IsInside(address->addr)) {
    transfer.inside = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool IsConnectFailure(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_URL_MALFORMAT;
}

// Scheme, host and port.
std::string OriginOf(const std::string& url) {
  return StrCat(ToLower(url.substr(0, url.find("://"))), "://", ToLower(HostOfUrl(url)));
}

Status Describe(const Transfer& transfer, CURLcode code) {
  if (transfer.inside) {
    return Status(Code::kForbidden,
                  StrCat(HostOfUrl(transfer.request.url),
                         " leads to an address of this machine or of its pods, which is asked only "
                         "for registries that are in registries.yaml"));
  }
  if (transfer.too_large) {
    return Status(Code::kTooLarge,
                  StrCat("the answer has more than ", transfer.request.body_bytes_max, " bytes"));
  }
  if (transfer.stopped) return Status(Code::kUnavailable, "the transfer was stopped");
  const std::string why = *transfer.detail != '\0' ? transfer.detail : transfer.curl.strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Status(Code::kTimeout,
                    StrCat("no answer from ", HostOfUrl(transfer.request.url), " for ",
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
    case CURLE_PEER_FAILED_VERIFICATION:
      return Status(Code::kUnavailable, StrCat(kUntrusted, why));
    default:
      return Status(Code::kUnavailable, why);
  }
}

// Headers of the request: all of them for its own host, those without credentials for others.
struct RequestHeaders {
  RequestHeaders(const Curl& curl, const HttpRequest& request) : all(curl), plain(curl) {
    for (const std::string& header : request.headers) {
      all.list = curl.slist_append(all.list, header.c_str());
      if (ToLower(header).starts_with("authorization:")) continue;
      plain.list = curl.slist_append(plain.list, header.c_str());
    }
  }
  HeaderList all, plain;
};

// What holds for each step of the transfer, which stays where it is.
void SetOptions(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  auto set = [&](CURLoption option, auto value) {
    transfer.curl.setopt(transfer.easy, option, value);
  };
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_OPENSOCKETFUNCTION, &OnOpen);
  set(CURLOPT_OPENSOCKETDATA, &transfer);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "swell");
  set(CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, static_cast<long>(request.stall.count())));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall.count()));
  set(CURLOPT_BUFFERSIZE, 512L << 10);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(transfer.detail));
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set(CURLOPT_XFERINFODATA, &transfer);
  if (request.offset > 0) set(CURLOPT_RANGE, StrCat(request.offset, "-").c_str());
  if (!request.form.empty()) set(CURLOPT_POSTFIELDS, request.form.c_str());
  if (!request.ca_file.empty()) set(CURLOPT_CAINFO, request.ca_file.c_str());
  if (request.insecure) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

// One request. `own`: to the host that the credentials are for.
Status SendStep(Transfer& transfer,
                const std::string& url,
                bool own,
                const RequestHeaders& headers) {
  const HttpRequest& request = transfer.request;
  HttpAnswer& answer = transfer.answer;
  auto set = [&](CURLoption option, auto value) {
    transfer.curl.setopt(transfer.easy, option, value);
  };
  transfer.guarded = (!own || request.named_by_others) && !request.inside_allowed;
  answer.elsewhere = !own;
  answer.body.clear();
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_HTTPHEADER, own ? headers.all.list : headers.plain.list);
  const bool user = own && !request.user.empty();
  set(CURLOPT_USERNAME, user ? request.user.c_str() : nullptr);
  set(CURLOPT_PASSWORD, user ? request.password.c_str() : nullptr);
  // A proxy of this machine cannot reach its loopback; nor would it be known where one leads.
  set(CURLOPT_NOPROXY, IsLoopback(HostOfUrl(url)) ? "*" : nullptr);
  const CURLcode code = transfer.curl.perform(transfer.easy);
  long status = 0;
  transfer.curl.getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  answer.connected = !IsConnectFailure(code);
  return code == CURLE_OK ? Status::Ok() : Describe(transfer, code);
}

// Two addresses are the same where the mask is.
bool SameNetwork(const uint8_t* one, const uint8_t* other, const uint8_t* mask, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (((one[i] ^ other[i]) & mask[i]) != 0) return false;
  }
  return true;
}

// An address of IPv4 in four bytes, also where it is written as one of IPv6; else sixteen.
std::vector<uint8_t> BytesOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&four);
    return {bytes, bytes + sizeof four};
  }
  if (address.sa_family != AF_INET6) return {};
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const uint8_t* bytes = six.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&six) || IN6_IS_ADDR_V4COMPAT(&six)) return {bytes + 12, bytes + 16};
  return {bytes, bytes + sizeof six};
}

// Addresses of this machine, to which cluster IPs belong, and of the pods on its bridges.
bool IsOfMachine(const std::vector<uint8_t>& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return true;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr) continue;
    const std::vector<uint8_t> own = BytesOf(*one->ifa_addr);
    if (own.size() != address.size()) continue;
    found = own == address;
    const std::vector<uint8_t> mask = BytesOf(*one->ifa_netmask);
    if (mask.size() != own.size() || !std::string_view(one->ifa_name).starts_with("swell"))
      continue;
    found = found || SameNetwork(own.data(), address.data(), mask.data(), own.size());
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace

bool IsInside(const sockaddr& address) {
  const std::vector<uint8_t> bytes = BytesOf(address);
  if (bytes.size() == 4) {
    const bool near = bytes[0] == 127 || bytes[0] == 0 || (bytes[0] == 169 && bytes[1] == 254);
    return near || IsOfMachine(bytes);
  }
  if (bytes.size() != 16) return true;
  const bool link_local = bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  const bool zeros =
      std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t one) { return one == 0; });
  return link_local || (zeros && bytes.back() <= 1) || IsOfMachine(bytes);
}

std::string HostOfUrl(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  // Before it may be a user, whom some would take for the host.
  if (const size_t at = host.rfind('@'); at != std::string::npos) host.erase(0, at + 1);
  return host;
}

bool IsUnknownHost(const Status& status) {
  const std::vector<StatusCause>& causes = status.details().causes;
  return causes.size() == 1 && causes[0].reason == kUnknownHost;
}

bool IsTlsFailure(const Status& status) { return status.message().starts_with(kTlsFailure); }

bool IsUntrusted(const Status& status) { return status.message().starts_with(kUntrusted); }

Status SendHttp(const HttpRequest& request, HttpAnswer& answer) {
  const Result<Curl>& loaded = LoadedCurl();
  if (!loaded.ok()) return loaded.status();
  const Handle handle(*loaded);
  if (handle.easy == nullptr) return Status(Code::kUnavailable, "libcurl cannot be started");
  answer = HttpAnswer();
  Transfer transfer{request, answer, *loaded, handle.easy, ProxyPort()};
  SetOptions(transfer);
  const RequestHeaders headers(*loaded, request);
  // Redirects are followed here, where each step is looked at.
  std::string url = request.url;
  for (long redirects = 0;; ++redirects) {
    // A redirect with a user in it is written to be read in two ways.
    const bool plainly = redirects == 0 || url.find_first_of("@\\") == std::string::npos;
    const bool own = plainly && OriginOf(url) == OriginOf(request.url);
    SWELL_RETURN_IF_ERROR(SendStep(transfer, url, own, headers));
    const char* next = nullptr;
    transfer.curl.getinfo(handle.easy, CURLINFO_REDIRECT_URL, &next);
    // What a form says is for its own host.
    if (next == nullptr || !request.form.empty()) return Status::Ok();
    if (redirects >= kRedirectsMax) {
      return Status(Code::kUnavailable, StrCat("more than ", kRedirectsMax, " redirects"));
    }
    url = next;
  }
}

}  // namespace swell::images
