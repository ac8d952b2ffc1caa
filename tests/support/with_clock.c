// Runs a program with another wall clock than the machine's:
//
//     with_clock SECONDS PROGRAM ARGUMENT...
//
// The program becomes this process, so its signals, its exit status and its end are what they would be without. A child
// of it watches: it hides the vDSO when the program begins, so that every look at the clock is a system call, and
// answers those that ask for the time of day, with SECONDS added. Everything that the program starts in turn has that
// clock too. The monotonic clock, and what waits on it, stays the machine's.
//
// Exit status 126: this cannot be done here; it says why.
#define _GNU_SOURCE
#include <stdio.h>

enum { kCannot = 126 };

#if defined(__x86_64__) && defined(__linux__)
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OFFSET(field) offsetof(struct seccomp_data, field)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OFFSET(field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))

// Stops the program where it asks for the time of day, and nowhere else: the rest costs it nothing.
static int stop_at_the_time_of_day(void) {
  struct sock_filter rules[] = {
      LOAD(arch),
      IF_EQUAL(AUDIT_ARCH_X86_64, 0, 8),
      LOAD(nr),
      IF_EQUAL(SYS_gettimeofday, 7, 0),
      IF_EQUAL(SYS_time, 6, 0),
      IF_EQUAL(SYS_clock_gettime, 0, 4),
      LOAD(args[0]),
      IF_EQUAL(CLOCK_REALTIME, 3, 0),
      IF_EQUAL(CLOCK_REALTIME_COARSE, 2, 0),
      IF_EQUAL(CLOCK_TAI, 1, 0),
      ANSWER(SECCOMP_RET_ALLOW),
      ANSWER(SECCOMP_RET_TRACE),
  };
  const struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  // Without it only root may.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void put(pid_t thread, unsigned long long address, const void *bytes, size_t size) {
  if (address == 0) return;
  const struct iovec here = {(void *)bytes, size}, there = {(void *)(uintptr_t)address, size};
  (void)!process_vm_writev(thread, &here, 1, &there, 1, 0);
}

// In the place of the call that the thread has stopped before.
static void tell_the_time(pid_t thread, long long seconds) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0) return;
  const clockid_t id = registers.orig_rax == SYS_clock_gettime ? (clockid_t)registers.rdi : CLOCK_REALTIME;
  struct timespec now;
  clock_gettime(id, &now);
  now.tv_sec += seconds;
  unsigned long long answer = 0;
  if (registers.orig_rax == SYS_clock_gettime) {
    put(thread, registers.rsi, &now, sizeof now);
  } else if (registers.orig_rax == SYS_gettimeofday) {
    const long long microseconds[2] = {now.tv_sec, now.tv_nsec / 1000};
    put(thread, registers.rdi, microseconds, sizeof microseconds);
  } else {
    answer = (unsigned long long)now.tv_sec;
    put(thread, registers.rdi, &answer, sizeof answer);
  }
  registers.orig_rax = (unsigned long long)-1;  // the kernel is not asked
  registers.rax = answer;
  ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

static unsigned long word_at(pid_t process, unsigned long long address) {
  return (unsigned long)ptrace(PTRACE_PEEKDATA, process, (void *)(uintptr_t)address, NULL);
}

// On the stack of a program that begins: argc, argv, 0, environment, 0, then pairs, among them where the vDSO is.
static void hide_vdso(pid_t process) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, process, NULL, &registers) != 0) return;
  const size_t word = sizeof(unsigned long);
  unsigned long long at = registers.rsp + (word_at(process, registers.rsp) + 2) * word;
  while (word_at(process, at) != 0) at += word;
  for (at += word; word_at(process, at) != AT_NULL; at += 2 * word) {
    if (word_at(process, at) == AT_SYSINFO_EHDR) ptrace(PTRACE_POKEDATA, process, (void *)(uintptr_t)at, AT_IGNORE);
  }
}

static int is_stop_signal(int number) {
  return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void go_on(pid_t thread, int status, long long seconds) {
  const int event = status >> 16, number = WSTOPSIG(status);
  if (event == PTRACE_EVENT_STOP && is_stop_signal(number)) {
    ptrace(PTRACE_LISTEN, thread, NULL, NULL);  // somebody stopped it: it stays so until it is continued
    return;
  }
  if (event == PTRACE_EVENT_SECCOMP) tell_the_time(thread, seconds);
  if (event == PTRACE_EVENT_EXEC) hide_vdso(thread);
  const long signal_to_deliver = event == 0 ? number : 0;
  ptrace(PTRACE_CONT, thread, NULL, signal_to_deliver);
}

// Never returns: ends with the last thread of the program.
static void watch(pid_t program, long long seconds, int tell) {
  const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  int problem = ptrace(PTRACE_SEIZE, program, NULL, options) == 0 ? 0 : errno;
  (void)!write(tell, &problem, sizeof problem);
  close(tell);
  if (problem != 0) _exit(kCannot);
  setsid();  // a terminal's signals are for the program alone
  int status = 0;
  for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
    if (thread > 0 && WIFSTOPPED(status)) go_on(thread, status, seconds);
  }
  _exit(0);
}

// 0 when a child watches this process; else why not.
static int be_watched(long long seconds) {
  int permit[2], told[2], problem = EIO;
  if (pipe(permit) != 0 || pipe(told) != 0) return errno;
  const pid_t program = getpid();
  const pid_t watcher = fork();
  if (watcher < 0) return errno;
  if (watcher == 0) {
    char permitted;
    close(permit[1]);
    close(told[0]);
    if (read(permit[0], &permitted, 1) != 1) _exit(kCannot);
    watch(program, seconds, told[1]);
  }
  prctl(PR_SET_PTRACER, watcher, 0, 0, 0);  // where a process may otherwise be traced by its parents only
  (void)!write(permit[1], "", 1);
  close(permit[0]);
  close(permit[1]);
  close(told[1]);
  if (read(told[0], &problem, sizeof problem) != sizeof problem) problem = EIO;
  close(told[0]);
  return problem;
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "usage: with_clock SECONDS PROGRAM ARGUMENT...\n");
    return 2;
  }
  const int problem = be_watched(atoll(words[1]));
  if (problem != 0) {
    fprintf(stderr, "with_clock: this process cannot be traced: %s\n", strerror(problem));
    return kCannot;
  }
  if (stop_at_the_time_of_day() != 0) {
    fprintf(stderr, "with_clock: no filter for system calls: %s\n", strerror(errno));
    return kCannot;
  }
  execvp(words[2], words + 2);
  fprintf(stderr, "with_clock: %s: %s\n", words[2], strerror(errno));
  return 127;
}

#else
int main(void) {
  fprintf(stderr, "with_clock: only on Linux on x86_64\n");
  return kCannot;
}
#endif
