// Preloaded into a process of a test: its wall clock is as many seconds off as the file $SKEW_FILE says, 8 bytes that
// the test may change at any time. Time that only goes forward is the machine's, as it is where clocks differ; so is
// what TLS takes for the time (it asks time()), for certificates made a minute ago would not be valid yet.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* skew_seconds;

static const volatile int64_t* Map(void) {
  int file = open(getenv("SKEW_FILE"), O_RDONLY | O_CLOEXEC);
  void* mapped = mmap(NULL, sizeof(*skew_seconds), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  return mapped;
}

// Other libraries ask for the time before this one's constructors run.
int clock_gettime(clockid_t id, struct timespec* to) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  if (skew_seconds == NULL) skew_seconds = Map();
  const int failed = real(id, to);
  if (failed == 0 && id == CLOCK_REALTIME) to->tv_sec += *skew_seconds;
  return failed;
}
