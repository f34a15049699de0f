// libcurl's functions, found when the first request is sent (docs/adr/0021).
// - Threads: any; loaded once.
#pragma once

#include <curl/curl.h>

#include "base/result.h"

namespace swell::images {

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
  decltype(curl_multi_init)* multi_init;
  decltype(curl_multi_cleanup)* multi_cleanup;
  decltype(curl_multi_add_handle)* multi_add;
  decltype(curl_multi_remove_handle)* multi_remove;
  decltype(curl_multi_perform)* multi_perform;
  decltype(curl_multi_poll)* multi_poll;
  decltype(curl_multi_wakeup)* multi_wakeup;
  decltype(curl_multi_info_read)* multi_info_read;
};

// kUnavailable names the package that is missing.
const Result<Curl>& LoadedCurl();

}  // namespace swell::images
