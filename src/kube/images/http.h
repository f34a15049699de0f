// HTTP requests to registries, one at a time and blocking, by libcurl.
//
// Credentials in a request go to its own host and port only: a redirect to another does not take
// them along. A redirect to this machine or its pods is refused unless the request allows it:
// their services trust the machine, and the name of an image must not reach them.
//
// - Threads: any thread that may block.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::images {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string user, password;        // basic authentication where user is not empty
  std::string form;                  // sent by POST where it is not empty
  std::string ca_file;
  bool insecure = false;
  bool named_by_others = false;  // a registry chose the address: it leads nowhere inside
  bool inside_allowed = false;   // an administrator vouches for what the registry names
  int64_t offset = 0;            // asks for the bytes from there on
  // Receives the body of 200 and 206; false ends the transfer. Without it, the answer has it.
  std::function<bool(int status, std::string_view bytes)> on_body;
  size_t body_bytes_max = 4 << 20;
  std::chrono::seconds stall = std::chrono::seconds(30);  // without a byte
  const std::atomic<bool>* cancelled = nullptr;
};

struct HttpAnswer {
  int status = 0;
  bool connected = true;                       // false: it was never reached, or not trusted
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
  bool elsewhere = false;  // another host sent it than the one of the request
};

// An error means that there was no whole answer: kTimeout when nothing came for too long,
// kTooLarge, else kUnavailable. `answer` holds what did come.
Status SendHttp(const HttpRequest& request, HttpAnswer& answer);

// HOST or HOST:PORT of a URL.
std::string HostOfUrl(const std::string& url);

// Whether the address is the machine's own, a pod's, or one that only neighbours have.
bool IsInside(const sockaddr& address);

// Whether it failed because nobody knows the host, as on a machine without a network.
bool IsUnknownHost(const Status& status);

// Whether a failed request failed because the server does not speak TLS.
bool IsTlsFailure(const Status& status);
// The server's certificate is of no authority that is trusted, or for another name.
bool IsUntrusted(const Status& status);

}  // namespace swell::images
