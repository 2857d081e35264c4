/* SPDX-License-Identifier: MIT */
/* The recorder's system calls on Linux. Raw where glibc's wrapper caches or allocates. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* ftruncate beyond the limit sends SIGXFSZ, which kills: check first. */
static bool size_allowed(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       bytes <= limit.rlim_cur;
}

/* Move the descriptor up: a program that closed its standard streams would print into the drum. */
static int keep_off_stdio(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	const int error = errno;
	close(fd);
	errno = error;
	return moved;
}

int ky_os_memfd(const char *name, uint64_t bytes)
{
	if (!size_allowed(bytes))
		return -EFBIG;
	const int fd = keep_off_stdio(
		(int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd < 0)
		return -errno;
	if (ftruncate((int)fd, (off_t)bytes) != 0 ||
	    fcntl((int)fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		const int error = -errno;
		close((int)fd);
		return error;
	}
	return (int)fd;
}

/* Writes "kymo-PID.drum" without stdio, which may allocate. */
static void drum_file_name(char name[32], uint32_t pid)
{
	char digits[12];
	size_t count = 0;
	do
		digits[count++] = (char)('0' + pid % 10);
	while ((pid /= 10) != 0);
	char *end = name + 5;
	memcpy(name, "kymo-", 5);
	while (count)
		*end++ = digits[--count];
	strcpy(end, ".drum");
}

#define DRUM_NAMES_MAX 16u

/* Make kymo-PID.drum; an earlier process's of this pid is kept under another name. Return a descriptor or -errno. */
static int make_drum_file(int parent, char name[32], uint32_t pid)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	char old[40];
	drum_file_name(name, pid);
	int fd = openat(parent, name, flags, 0600);
	strcpy(old, name);
	strcpy(old + strlen(old), ".old");
	if (fd < 0 && errno == EEXIST && renameat(parent, name, parent, old) == 0)
		fd = openat(parent, name, flags, 0600);
	/* Another user's has the name and cannot be moved: one that is no pid, and that nobody can know before. */
	for (uint32_t i = 0; fd < 0 && i < DRUM_NAMES_MAX; i++) {
		if (errno != EEXIST && errno != EPERM && errno != EACCES && errno != ENOTEMPTY &&
		    errno != EISDIR && errno != ENOTDIR)
			break;
		uint32_t number = (uint32_t)ky_os_monotonic();
		(void)getrandom(&number, sizeof(number), GRND_NONBLOCK);
		drum_file_name(name, number | UINT32_C(1) << 31);
		fd = openat(parent, name, flags, 0600);
	}
	return fd < 0 ? -errno : fd;
}

int ky_os_file(const char *dir, uint32_t pid, uint64_t bytes)
{
	if (!size_allowed(bytes))
		return -EFBIG;
	const int parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	char name[32];
	int fd = make_drum_file(parent, name, pid);
	int result = fd;
	if (fd >= 0) {
		fd = keep_off_stdio(fd);
		result = fd < 0 ? -errno : fd;
	}
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
		result = -errno;
		unlinkat(parent, name, 0);
		close(fd);
	}
	close(parent);
	return result;
}

void *ky_os_map(int fd, uint64_t bytes, void *fixed)
{
	/*
	 * After mlockall(MCL_FUTURE) a writable mapping would be populated at once, all of it. Not in a forked child,
	 * which locks nothing: there the old mapping is replaced in one step, because other threads may read it.
	 */
	void *at = mmap(fixed, bytes, fixed ? PROT_READ | PROT_WRITE : PROT_NONE,
			MAP_SHARED | MAP_NORESERVE | (fixed ? MAP_FIXED : 0), fd, 0);
	if (at == MAP_FAILED || fixed)
		return at == MAP_FAILED ? NULL : at;
	munlock(at, bytes);
	if (mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0)
		return at;
	munmap(at, bytes);
	return NULL;
}

void ky_os_map_privately(int fd, uint64_t at, uint64_t bytes, uint8_t *base)
{
	(void)mmap(base + at, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, (off_t)at);
}

void ky_os_unmap(void *at, uint64_t bytes)
{
	munmap(at, bytes);
}

void *ky_os_private(size_t bytes, void *fixed)
{
	void *at =
		mmap(fixed, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED : 0), -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_WIPEONFORK);
	return at;
}

void ky_os_detach(void *at, size_t bytes)
{
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return;
	memcpy(copy, at, bytes);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		munmap(copy, bytes);
}

void ky_os_close(int fd)
{
	close(fd);
}

int64_t ky_os_size(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? st.st_size : -errno;
}

uint64_t ky_os_identity(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? (uint64_t)st.st_dev * 0x9e3779b97f4a7c15u ^ st.st_ino : 0;
}

bool ky_os_sealed(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int ky_os_write(int fd, const void *data, uint64_t bytes, uint64_t at)
{
	while (bytes) {
		const ssize_t n = pwrite(fd, data, bytes, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data = (const uint8_t *)data + n;
		bytes -= (uint64_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Kernels before 5.14 do not have this: there the signal is still possible. */
bool ky_os_populate(void *at, uint64_t bytes)
{
	if (madvise(at, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
		return true;
	madvise(at, bytes, MADV_REMOVE); /* give back what fitted */
	return false;
}

void ky_os_dump(void *at, uint64_t bytes, bool wanted)
{
	madvise(at, bytes, wanted ? MADV_DODUMP : MADV_DONTDUMP);
}

int32_t ky_os_pid(void)
{
	return (int32_t)syscall(SYS_getpid);
}

int32_t ky_os_tid(void)
{
	return (int32_t)syscall(SYS_gettid);
}

void ky_os_nap(uint32_t ns)
{
	const struct timespec time = {0, (long)ns};
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

void ky_os_yield(void)
{
	syscall(SYS_sched_yield);
}

void ky_os_comm(char name[16])
{
	memset(name, 0, 16);
	prctl(PR_GET_NAME, name);
}

bool ky_os_thread_alive(int32_t pid, int32_t tid)
{
	const long result = pid == KY_OS_ANY_PROCESS ? syscall(SYS_tkill, tid, 0)
						     : syscall(SYS_tgkill, pid, tid, 0);
	return result == 0 || errno != ESRCH;
}

/* Raw, because glibc leaves its own signals alone: that of a cancellation runs the thread's end in its handler. */
uint64_t ky_os_signals_hold(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	uint64_t held = UINT64_MAX, old = 0;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		held &= ~(UINT64_C(1) << (faults[i] - 1));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &held, &old, sizeof(held));
	return old;
}

void ky_os_signals_restore(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

bool ky_os_on_signal_stack(void)
{
	stack_t stack;
	return syscall(SYS_sigaltstack, NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ky_os_boottime(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

uint64_t ky_os_monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t ky_os_realtime(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t ky_os_monotonic_coarse(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

void ky_os_sleep(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, &left) != 0 &&
	       errno == EINTR)
		;
}

struct directory_entry { /* of getdents64 */
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* A memfd's link is "/memfd:kymo-drum (deleted)", a file's ends in "/kymo-PID.drum". */
static bool names_drum(int dir, const char *name)
{
	char link[512];
	const ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	if (strncmp(link, "/memfd:kymo-drum", 16) == 0)
		return true;
	const char *base = strrchr(link, '/');
	return base && strncmp(base, "/kymo-", 6) == 0 && n > 5 &&
	       strcmp(link + n - 5, ".drum") == 0;
}

static int visit_entry(int dir, const char *name, int (*visit)(int, void *), void *context)
{
	int fd = 0;
	const char *p = name;
	for (; *p >= '0' && *p <= '9' && fd < 1 << 24; p++)
		fd = fd * 10 + (*p - '0');
	if (p == name || *p != '\0' || !names_drum(dir, name))
		return 0;
	return visit(fd, context);
}

bool ky_os_is_drum(int fd)
{
	char name[24];
	snprintf(name, sizeof(name), "%d", fd);
	const int dir = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool is = dir >= 0 && names_drum(dir, name);
	if (dir >= 0)
		close(dir);
	return is;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

/*
 * From the kernel's random bytes, which are others after each exec. They are also glibc's stack canary and pointer guard, so
 * they are the key of a hash that does not reveal it: SipHash-2-4 of one word.
 */
uint64_t ky_os_image(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	const uint64_t words[] = {0x6b796d6f, UINT64_C(8) << 56}; /* the message, its length */
	uint64_t key[2] = {0, 0};
	if (random)
		memcpy(key, random, sizeof(key));
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
			 key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
	for (int i = 0; i < 2; i++) {
		v[3] ^= words[i];
		sip_rounds(v, 2);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int ky_os_each_drum(int (*visit)(int fd, void *context), void *context)
{
	const int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0;
	_Alignas(struct directory_entry) char buffer[2048];
	int result = 0;
	long n;
	while (result == 0 && (n = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < n && result == 0;) {
			const struct directory_entry *entry =
				(const struct directory_entry *)(const void *)(buffer + at);
			result = visit_entry(dir, entry->name, visit, context);
			at += entry->bytes;
		}
	close(dir);
	return result;
}

/* A line of /proc/self/maps: "start-end rwxp offset major:minor inode path". */
struct map_line {
	uint64_t start, end, offset, major, minor, inode;
	bool shared; /* and writable */
};

static const char *parse_number(const char *at, unsigned base, char until, uint64_t *value)
{
	for (*value = 0; *at && *at != until; at++) {
		const unsigned digit =
			*at <= '9' ? (unsigned)(*at - '0') : (unsigned)(*at - 'a' + 10);
		*value = *value * base + digit;
	}
	return *at ? at + 1 : at;
}

static void parse_line(const char *at, struct map_line *line)
{
	at = parse_number(at, 16, '-', &line->start);
	at = parse_number(at, 16, ' ', &line->end);
	line->shared = strncmp(at, "rw-s", 4) == 0;
	while (*at && *at++ != ' ')
		;
	at = parse_number(at, 16, ' ', &line->offset);
	at = parse_number(at, 16, ':', &line->major);
	at = parse_number(at, 16, ' ', &line->minor);
	parse_number(at, 10, ' ', &line->inode);
}

/* The search: a mapping may be in several lines, one after the other. */
struct map_search {
	const struct stat *file;
	uint64_t bytes;
	uint64_t start, end; /* of what was found so far; start 0: nothing */
};

/* Return true when all of the file was found. */
static bool search_line(struct map_search *search, const char *text)
{
	struct map_line line;
	parse_line(text, &line);
	const bool same = line.shared && line.inode == search->file->st_ino &&
			  line.major == major(search->file->st_dev) &&
			  line.minor == minor(search->file->st_dev);
	if (same && line.offset == 0)
		search->start = search->end = line.start;
	else if (!same || line.start != search->end || line.offset != line.start - search->start)
		search->start = 0;
	search->end = line.end;
	return search->start && search->end - search->start == search->bytes;
}

void *ky_os_mapping(int fd, uint64_t bytes)
{
	struct stat status;
	char buffer[4096], line[128];
	const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct map_search search = {&status, bytes, 0, 0};
	size_t used = 0;
	bool found = false;
	ssize_t n = 0;
	if (maps < 0 || fstat(fd, &status) != 0)
		goto out;
	while (!found && (n = read(maps, buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < n && !found; i++) {
			const bool ends = buffer[i] == '\n';
			if (!ends && used < sizeof(line) - 1)
				line[used++] = buffer[i];
			if (!ends)
				continue;
			line[used] = '\0';
			used = 0;
			found = search_line(&search, line);
		}
out:
	if (maps >= 0)
		close(maps);
	return found ? (void *)(uintptr_t)search.start : NULL;
}
