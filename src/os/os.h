/* SPDX-License-Identifier: MIT */
/*
 * os.h: the system and the CPU, for the recorder. "Signal-safe" functions may be called on an event's slow path: no
 * allocation, no lock; the caller saves errno.
 */
#ifndef KY_OS_OS_H
#define KY_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The CPU (one file per architecture). Signal-safe. */
/* Return the enum ky_tick_source that ky_cpu_ticks() reads; NONE: use the clock. */
int ky_cpu_tick_source(void);
/* Report whether libc may use registers that only AVX-512 has, and the CPU's xsavec saves them. */
bool ky_cpu_is_wide(void);
uint64_t ky_cpu_ticks(void);
/* Zero the words; the thread sanitizer does not see it. */
void ky_cpu_clear(uint64_t *words, size_t count);
/* Wait for an instant in a spin loop. */
void ky_cpu_relax(void);

/*
 * Order the stores before it against those after it; likewise for loads. The thread sanitizer does not know fences, but
 * all accesses that they order are atomic.
 */
#if defined(__SANITIZE_THREAD__)
#define KY_SANITIZE_THREAD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KY_SANITIZE_THREAD 1
#endif
#endif
#ifdef KY_SANITIZE_THREAD
#define KY_IS_SANITIZED_THREAD 1
#else
#define KY_IS_SANITIZED_THREAD 0
#endif
#ifdef KY_SANITIZE_THREAD
#define KY_STORE_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define KY_LOAD_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define KY_STORE_FENCE() __atomic_thread_fence(__ATOMIC_RELEASE)
#define KY_LOAD_FENCE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Memory and descriptors. Signal-safe. */
int ky_os_memfd(const char *name, uint64_t bytes); /* sealed against shrinking and growing */
int ky_os_file(
	const char *dir, uint32_t pid,
	uint64_t
		bytes); /* dir/kymo-PID.drum, new, 0600; another number where others have the name */
void *ky_os_map(int fd, uint64_t bytes, void *fixed); /* shared; NULL on failure */
/* Map a part of it again in the shared mapping at base: what is written there changes it for this process alone. */
void ky_os_map_privately(int fd, uint64_t at, uint64_t bytes, uint8_t *base);
void ky_os_unmap(void *at, uint64_t bytes);
void *ky_os_private(size_t bytes, void *fixed); /* zeroed, and zeroed again in a forked child */
void ky_os_detach(void *at,
		  size_t bytes); /* replace shared pages by private ones with their content */
void ky_os_close(int fd);
int64_t ky_os_size(int fd);      /* negative errno on failure */
uint64_t ky_os_identity(int fd); /* of the file; 0 if fd is not open */
bool ky_os_sealed(int fd);       /* a memfd that cannot shrink */
int ky_os_write(int fd, const void *data, uint64_t bytes, uint64_t at); /* 0 or negative errno */
/* Allocate the memory, so that writing there does not raise SIGBUS on a full disk. Return false on a full disk. */
bool ky_os_populate(void *at, uint64_t bytes);
/* Include the memory in core dumps, or not. */
void ky_os_dump(void *at, uint64_t bytes, bool wanted);

/* Threads and processes. Signal-safe. */
int32_t ky_os_pid(void);
int32_t ky_os_tid(void);
void ky_os_yield(void);
void ky_os_nap(uint32_t ns);    /* no cancellation point */
void ky_os_comm(char name[16]); /* the calling thread's name */
#define KY_OS_ANY_PROCESS 0     /* as pid: a thread of any process */
bool ky_os_thread_alive(int32_t pid, int32_t tid);
/* Hold back all signals but those of faults: a handler must not jump out of what follows. Return the old mask. */
uint64_t ky_os_signals_hold(void);
void ky_os_signals_restore(uint64_t mask);
bool ky_os_on_signal_stack(void); /* the calling function runs on the sigaltstack() */

/* Report, in a destructor, whether the process ends: else the library is unloaded. prepare when it is loaded. */
void ky_os_ending_prepare(void);
bool ky_os_ending(void);
/* Return where fd's file is mapped already, all of it from its beginning, or NULL. */
void *ky_os_mapping(int fd, uint64_t bytes);
/*
 * Report whether this code may run in a signal handler: a signal with a handler is blocked, or its handler does not block
 * it. Costs a system call for each signal.
 */
bool ky_os_maybe_in_handler(void);
/* Write text to standard error while it is the file of that identity, unless that would block. Raise no signal. */
void ky_os_report(const char *text, size_t bytes, uint64_t identity);

/* Clocks in nanoseconds. Signal-safe. */
uint64_t ky_os_boottime(void);
uint64_t ky_os_monotonic(void);
uint64_t ky_os_realtime(void);
uint64_t ky_os_monotonic_coarse(
	void); /* by memory alone: neither a system call nor the CPU's counter */
void ky_os_sleep(uint64_t ns);

/* Report whether the descriptor's name is a drum's. */
bool ky_os_is_drum(int fd);
/* Return a random number that is the same in all code of the process until it calls exec. */
uint64_t ky_os_image(void);

/* Call visit with each open descriptor of this process whose name is a drum's, until it returns non-zero. Return that. */
int ky_os_each_drum(int (*visit)(int fd, void *context), void *context);

#endif
