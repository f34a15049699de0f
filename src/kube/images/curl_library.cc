#include "kube/images/curl_library.h"

#include "kube/images/shared_library.h"

namespace swell::images {
namespace {

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
  library.Find("curl_multi_init", curl.multi_init);
  library.Find("curl_multi_cleanup", curl.multi_cleanup);
  library.Find("curl_multi_add_handle", curl.multi_add);
  library.Find("curl_multi_remove_handle", curl.multi_remove);
  library.Find("curl_multi_perform", curl.multi_perform);
  library.Find("curl_multi_poll", curl.multi_poll);
  library.Find("curl_multi_wakeup", curl.multi_wakeup);
  library.Find("curl_multi_info_read", curl.multi_info_read);
  SWELL_RETURN_IF_ERROR(library.Check());
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Status(Code::kUnavailable, "libcurl cannot be started");
  }
  return curl;
}

}  // namespace

const Result<Curl>& LoadedCurl() {
  static const Result<Curl> curl = LoadCurl();
  return curl;
}

}  // namespace swell::images
