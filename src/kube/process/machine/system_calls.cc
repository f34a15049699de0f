#include "kube/process/machine/system_calls.h"

#include "base/strings.h"

namespace swell::process {
namespace {

constexpr std::string_view kOrdinary = R"(
    _llseek access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2
    dup3 eventfd eventfd2 faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod
    fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr
    flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate
    ftruncate64 futimesat getcwd getdents getdents64 getxattr inotify_add_watch inotify_init
    inotify_init1 inotify_rm_watch ioctl lchown lchown32 lgetxattr link linkat listxattr
    llistxattr lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat
    name_to_handle_at newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2
    pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr rename
    renameat renameat2 rmdir sendfile sendfile64 setxattr splice stat stat64 statfs statfs64
    statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64 umask unlink
    unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev
    _newselect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
    epoll_wait epoll_wait_old io_cancel io_destroy io_getevents io_pgetevents
    io_pgetevents_time64 io_setup io_submit poll ppoll ppoll_time64 pselect6 pselect6_time64
    select signalfd signalfd4 timerfd_create timerfd_gettime timerfd_gettime64
    timerfd_settime timerfd_settime64
    brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock
    mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap
    pkey_alloc pkey_free pkey_mprotect process_mrelease remap_file_pages shmat shmctl shmdt
    shmget
    arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue
    futex_time64 futex_wait futex_waitv futex_wake get_robust_list get_thread_area getcpu
    getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid getpgrp
    getpid getppid getpriority getresgid getresgid32 getresuid getresuid32 getrlimit
    getrusage getsid gettid getuid getuid32 ioprio_get ioprio_set kill landlock_add_rule
    landlock_create_ruleset landlock_restrict_self modify_ldt pidfd_open pidfd_send_signal
    prctl prlimit64 process_vm_readv process_vm_writev ptrace rseq sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
    sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
    sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_thread_area
    set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups
    setgroups32 setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid
    setresuid32 setreuid setreuid32 setrlimit setsid setuid setuid32 tgkill tkill ugetrlimit
    vfork wait4 waitid waitpid
    alarm pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
    rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
    sigaction sigaltstack signal sigpending sigprocmask sigreturn sigsuspend
    adjtimex clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime
    clock_gettime64 clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep
    setitimer time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64
    timer_settime timer_settime64 times
    accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom
    recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown
    socketcall socketpair
    ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
    mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop
    semtimedop_time64
    getrandom oldolduname olduname sysinfo uname uretprobe
)";

struct Row {
  std::string_view capability;
  std::string_view calls;
};
constexpr Row kOfCapabilities[] = {
    {"BPF", "bpf"},
    {"DAC_READ_SEARCH", "open_by_handle_at"},
    {"PERFMON", "perf_event_open"},
    {"SYSLOG", "syslog"},
    {"SYS_ADMIN",
     "bpf clone clone3 fanotify_init fanotify_mark fsconfig fsmount fsopen fspick"
     " lookup_dcookie mount mount_setattr move_mount open_tree perf_event_open"
     " pivot_root quotactl quotactl_fd setdomainname sethostname setns syslog umount"
     " umount2 unshare"},
    {"SYS_BOOT", "reboot"},
    {"SYS_CHROOT", "chroot"},
    {"SYS_MODULE", "delete_module finit_module init_module"},
    {"SYS_NICE",
     "get_mempolicy mbind migrate_pages move_pages set_mempolicy"
     " set_mempolicy_home_node"},
    {"SYS_PACCT", "acct"},
    {"SYS_PTRACE", "kcmp pidfd_getfd process_madvise"},
    {"SYS_RAWIO", "ioperm iopl"},
    {"SYS_TIME", "clock_settime clock_settime64 settimeofday stime"},
    {"SYS_TTY_CONFIG", "vhangup"},
};

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view line : Split(text, '\n')) {
    for (std::string_view word : Split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
  }
  return words;
}

}  // namespace

const std::vector<std::string_view>& OrdinaryCalls() {
  static const std::vector<std::string_view> kCalls = Words(kOrdinary);
  return kCalls;
}

const std::vector<CapabilityCalls>& CallsOfCapabilities() {
  static const std::vector<CapabilityCalls> kCalls = [] {
    std::vector<CapabilityCalls> rows;
    for (const Row& row : kOfCapabilities) rows.push_back({row.capability, Words(row.calls)});
    return rows;
  }();
  return kCalls;
}

}  // namespace swell::process
