/* SPDX-License-Identifier: MIT */
/*
 * faults.c: makes one call of a program fail: the Nth allocation, or the Nth call that writes a file.
 *
 * It is loaded before a program (LD_PRELOAD), or linked into it with --wrap for each name of FAULTS (FAULTS_WRAP). Before main
 * it becomes a server: each line that it reads from descriptor FAULTS_IN,
 *
 *	KIND MODE AT ERRNO      memory|write once|on N E
 *
 * runs the program once in a forked child, in which call number AT of that kind fails with ERRNO, "on": and all after it. ERRNO 0
 * is a short write. Standard output and error go to the files "out" and "err". Then it answers on FAULTS_OUT with
 *
 *	STATUS CALLS FAILED OFFSET...   as wait(2) gives it; how many such calls there were, and how many failed; where the
 *	                                first that failed was called from, in the program, for addr2line
 *
 * Without FAULTS_IN in the environment it does nothing. What libc calls for stdio is not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_SECONDS 300u
#define STACK_MAX 24

/* Library calls that are looked up by name: result, name, parameters, arguments. */
#define CALLS(X)                                                                                   \
	X(ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes))             \
	X(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t at),                     \
	  (fd, data, bytes, at))                                                                   \
	X(ssize_t, pwrite64, (int fd, const void *data, size_t bytes, off_t at),                   \
	  (fd, data, bytes, at))                                                                   \
	X(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))     \
	X(int, fsync, (int fd), (fd))                                                              \
	X(int, fdatasync, (int fd), (fd))                                                          \
	X(int, ftruncate, (int fd, off_t bytes), (fd, bytes))                                      \
	X(int, ftruncate64, (int fd, off_t bytes), (fd, bytes))                                    \
	X(int, fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))        \
	X(int, fallocate64, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))      \
	X(int, rename, (const char *from, const char *to), (from, to))                             \
	X(int, renameat, (int dir, const char *from, int to_dir, const char *to),                  \
	  (dir, from, to_dir, to))                                                                 \
	X(int, linkat, (int dir, const char *from, int to_dir, const char *to, int flags),         \
	  (dir, from, to_dir, to, flags))                                                          \
	X(int, open, (const char *path, int flags, ...), (path, flags, mode))                      \
	X(int, open64, (const char *path, int flags, ...), (path, flags, mode))                    \
	X(int, openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))      \
	X(int, openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))    \
	X(void *, mmap, (void *at, size_t bytes, int allowed, int flags, int fd, off_t from),      \
	  (at, bytes, allowed, flags, fd, from))                                                   \
	X(void *, mmap64, (void *at, size_t bytes, int allowed, int flags, int fd, off_t from),    \
	  (at, bytes, allowed, flags, fd, from))                                                   \
	X(void *, mremap, (void *old, size_t had, size_t bytes, int flags, ...),                   \
	  (old, had, bytes, flags, fixed))

/* The heap, under the names that glibc keeps for replacements. */
#define HEAP(X)                                                                                    \
	X(void *, malloc, (size_t bytes))                                                          \
	X(void *, calloc, (size_t count, size_t bytes))                                            \
	X(void *, realloc, (void *old, size_t bytes))

#ifdef FAULTS_WRAP
#define NAME(name) __wrap_##name
#define REAL(name) __real_##name
#define HEAP_REAL(name) __real_##name
#define DECLARE(result, name, parameters, arguments)                                               \
	result NAME(name) parameters;                                                              \
	result REAL(name) parameters;
#define DECLARE_HEAP(result, name, parameters)                                                     \
	result NAME(name) parameters;                                                              \
	result REAL(name) parameters;
CALLS(DECLARE)
HEAP(DECLARE_HEAP)
#else
#define NAME(name) name
#define REAL(name) ((__typeof__(&name))(uintptr_t)real(#name))
#define HEAP_REAL(name) __libc_##name
#define DECLARE_HEAP(result, name, parameters) result __libc_##name parameters;
HEAP(DECLARE_HEAP)

static void *real(const char *name)
{
	void *const found = dlsym(RTLD_NEXT, name);
	if (!found)
		abort();
	return found;
}
#endif

enum kind { KIND_NONE, KIND_MEMORY, KIND_WRITE };

static struct plan {
	enum kind kind;
	bool on; /* from that call on */
	int error;
	unsigned long at;
} plan;

/* Shared by the server and the child that runs. */
static struct {
	atomic_ulong calls;
	atomic_ulong failed;
	int depth;
	void *stack[STACK_MAX];
} * counts;

/* These abort or crash without memory, and ld.so says only that it found no library. */
static const char *const hopeless_libraries[] = {"libglib",       "libgmodule",  "libgobject",
						 "libbabeltrace", "babeltrace-", "libtraceevent",
						 "ld-linux"};

static bool is_program(const Dl_info *place)
{
	Dl_info program;
	return dladdr((void *)getauxval(AT_ENTRY), &program) &&
	       place->dli_fbase == program.dli_fbase;
}

/* Whether one of these libraries called, directly or through libc. */
static bool is_hopeless(void *const *stack, int depth)
{
	Dl_info place;
	for (int i = 0; i < depth && dladdr(stack[i], &place) && !is_program(&place); i++) {
		const char *const slash = strrchr(place.dli_fname, '/');
		const char *const name = slash ? slash + 1 : place.dli_fname;
		for (size_t j = 0; j < sizeof(hopeless_libraries) / sizeof(*hopeless_libraries);
		     j++)
			if (strncmp(name, hopeless_libraries[j], strlen(hopeless_libraries[j])) ==
			    0)
				return true;
	}
	return false;
}

/* Count a call; whether it fails. */
static bool fails(enum kind kind)
{
	if (plan.kind != kind)
		return false;
	const unsigned long number = atomic_fetch_add(&counts->calls, 1) + 1;
	if (number != plan.at && !(plan.on && number > plan.at))
		return false;
	void *stack[STACK_MAX];
	plan.kind = KIND_NONE;
	const int depth = backtrace(stack, STACK_MAX);
	const bool hopeless = is_hopeless(stack, depth);
	plan.kind = kind;
	if (hopeless)
		return false;
	if (atomic_fetch_add(&counts->failed, 1) == 0) {
		memcpy(counts->stack, stack, sizeof(stack));
		counts->depth = depth;
	}
	errno = plan.error;
	return true;
}

/* ---- memory ---- */

void *NAME(malloc)(size_t bytes)
{
	return fails(KIND_MEMORY) ? NULL : HEAP_REAL(malloc)(bytes);
}

void *NAME(calloc)(size_t count, size_t bytes)
{
	return fails(KIND_MEMORY) ? NULL : HEAP_REAL(calloc)(count, bytes);
}

void *NAME(realloc)(void *old, size_t bytes)
{
	return bytes && fails(KIND_MEMORY) ? NULL : HEAP_REAL(realloc)(old, bytes);
}

/* Anonymous memory is an allocation, a shared mapping of a file a way to write to it. */
static enum kind kind_of_mapping(int allowed, int flags)
{
	if (flags & MAP_ANONYMOUS)
		return KIND_MEMORY;
	return (flags & MAP_SHARED) && (allowed & PROT_WRITE) ? KIND_WRITE : KIND_NONE;
}

#define MAPPING(name)                                                                              \
	void *NAME(name)(void *at, size_t bytes, int allowed, int flags, int fd, off_t from)       \
	{                                                                                          \
		const enum kind kind = kind_of_mapping(allowed, flags);                            \
		if (kind && fails(kind))                                                           \
			return MAP_FAILED;                                                         \
		return REAL(name)(at, bytes, allowed, flags, fd, from);                            \
	}
MAPPING(mmap)
MAPPING(mmap64)

void *NAME(mremap)(void *old, size_t had, size_t bytes, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	void *const fixed = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	return bytes > had && fails(KIND_MEMORY) ? MAP_FAILED
						 : REAL(mremap)(old, had, bytes, flags, fixed);
}

/* ---- files ---- */

/* Standard error is where the program says what happened. */
static bool write_fails(int fd)
{
	return fd != STDERR_FILENO && fails(KIND_WRITE);
}

static size_t half(size_t bytes)
{
	return bytes > 1 ? bytes / 2 : bytes;
}

ssize_t NAME(write)(int fd, const void *data, size_t bytes)
{
	if (!write_fails(fd))
		return REAL(write)(fd, data, bytes);
	return plan.error ? -1 : REAL(write)(fd, data, half(bytes));
}

#define PWRITE(name)                                                                               \
	ssize_t NAME(name)(int fd, const void *data, size_t bytes, off_t at)                       \
	{                                                                                          \
		if (!write_fails(fd))                                                              \
			return REAL(name)(fd, data, bytes, at);                                    \
		return plan.error ? -1 : REAL(name)(fd, data, half(bytes), at);                    \
	}
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t NAME(writev)(int fd, const struct iovec *parts, int count)
{
	if (!write_fails(fd))
		return REAL(writev)(fd, parts, count);
	return plan.error ? -1 : REAL(write)(fd, parts[0].iov_base, half(parts[0].iov_len));
}

/* Calls that do all or nothing: neither a part nor a signal ends them early. */
static bool whole_fails(void)
{
	return plan.error && plan.error != EINTR && fails(KIND_WRITE);
}

#define WHOLE(name, parameters, arguments)                                                         \
	int NAME(name) parameters                                                                  \
	{                                                                                          \
		return whole_fails() ? -1 : REAL(name) arguments;                                  \
	}
WHOLE(fsync, (int fd), (fd))
WHOLE(fdatasync, (int fd), (fd))
WHOLE(ftruncate, (int fd, off_t bytes), (fd, bytes))
WHOLE(ftruncate64, (int fd, off_t bytes), (fd, bytes))
WHOLE(fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
WHOLE(fallocate64, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
WHOLE(rename, (const char *from, const char *to), (from, to))
WHOLE(renameat, (int dir, const char *from, int to_dir, const char *to), (dir, from, to_dir, to))
WHOLE(linkat, (int dir, const char *from, int to_dir, const char *to, int flags),
      (dir, from, to_dir, to, flags))

/* Only those that may make a file. */
#define OPEN(name, parameters, arguments)                                                          \
	int NAME(name) parameters                                                                  \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {                              \
			va_list list;                                                              \
			va_start(list, flags);                                                     \
			mode = va_arg(list, mode_t);                                               \
			va_end(list);                                                              \
			if (whole_fails())                                                         \
				return -1;                                                         \
		}                                                                                  \
		return REAL(name) arguments;                                                       \
	}
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

/* ---- the server ---- */

static void redirect(const char *path, int to)
{
	const int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	close(fd);
}

static void answer(int out, int status)
{
	char line[64 + STACK_MAX * 20];
	Dl_info place;
	int bytes = snprintf(line, sizeof(line), "%d %lu %lu", status, atomic_load(&counts->calls),
			     atomic_load(&counts->failed));

	for (int i = 0; i < counts->depth; i++)
		if (dladdr(counts->stack[i], &place) && is_program(&place))
			bytes += snprintf(
				line + bytes, sizeof(line) - (size_t)bytes, " %zx",
				(size_t)((char *)counts->stack[i] - (char *)place.dli_fbase));
	line[bytes++] = '\n';
	if (REAL(write)(out, line, (size_t)bytes) != bytes)
		_exit(126);
}

static void serve(int in, int out)
{
	char kind[16], mode[16];
	unsigned long at;
	int error, status;
	FILE *const from = fdopen(in, "r");

	while (from && fscanf(from, "%15s %15s %lu %d", kind, mode, &at, &error) == 4) {
		atomic_store(&counts->calls, 0);
		atomic_store(&counts->failed, 0);
		counts->depth = 0;
		const pid_t child = fork();
		if (child == 0) {
			redirect("out", STDOUT_FILENO);
			redirect("err", STDERR_FILENO);
			alarm(HANG_SECONDS);
			close(in);
			close(out);
			plan.on = strcmp(mode, "on") == 0;
			plan.error = error;
			plan.at = at;
			plan.kind = strcmp(kind, "memory") == 0 ? KIND_MEMORY : KIND_WRITE;
			return;
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			_exit(126);
		answer(out, status);
	}
	_exit(0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *const in = getenv("FAULTS_IN"), *const out = getenv("FAULTS_OUT");

	if (!in || !out)
		return;
	counts = REAL(mmap)(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		_exit(126);
	counts->depth = backtrace(counts->stack, STACK_MAX); /* the first call loads a library */
	unsetenv("FAULTS_IN");
	unsetenv("LD_PRELOAD");
	serve(atoi(in), atoi(out));
}
