// Preloaded into the program under test: a medium on which every sync takes its time, and now and then stalls.
//
//   SLOW_SYNC_MS      what each sync takes at least
//   SLOW_SYNC_STALL   what every SLOW_SYNC_EVERYth takes
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static long setting(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

static void be_slow(void) {
  static atomic_long count;
  const long every = setting("SLOW_SYNC_EVERY");
  const long number = atomic_fetch_add(&count, 1) + 1;
  const long ms = every != 0 && number % every == 0 ? setting("SLOW_SYNC_STALL") : setting("SLOW_SYNC_MS");
  const struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
}

#define SLOW(name)                                           \
  int name(int fd) {                                         \
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); \
    be_slow();                                               \
    return real(fd);                                         \
  }
SLOW(fsync)
SLOW(fdatasync)
SLOW(syncfs)
