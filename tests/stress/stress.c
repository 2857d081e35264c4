/* SPDX-License-Identifier: MIT */
/*
 * stress.c [SECONDS [SEED]]: everything that may happen to a traced process, at once and in many mixtures, read by every
 * kind of reader: a session and a subscriber in the process, a recorder that follows it, one that looks in the middle
 * (a snapshot), and a person who opens what a killed process left. No event may be damaged or come twice, and those that are missing
 * must be counted. KYMO_STRESS_SECONDS is for make proof. A round that fails prints its number: "stress 0 NUMBER" repeats it.
 */
#include "victim.h"

#include "core/drum.h"
#include "formats/drum/drum_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 300u
#define SWARM 36000u /* short threads in a round with many of them */

enum place { IN_MEMORY, IN_FOLDER, ON_SMALL_DISK };

struct round {
	uint32_t number;
	struct torment torment;
	enum place place;
	uint64_t ring_bytes, total_bytes;
	uint32_t kill_after_ms; /* 0: it ends by itself */
	char session[128];
};

static struct ledger *ledger;
static struct tally *tally;
static char folder[] = "/tmp/kymo-stress-XXXXXX";
static char small_disk[64]; /* empty: there is none */

static uint32_t random_below(uint32_t *state, uint32_t end)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % end;
}

/* ---- a round ---- */

static void choose_limits(struct round *r, uint32_t *random)
{
	static const uint64_t rings[] = {16u << 10, 64u << 10, 256u << 10, 1u << 20};
	r->ring_bytes = rings[random_below(random, 4)];
	r->total_bytes = r->ring_bytes * (1 + random_below(random, 64));
	const uint32_t place = random_below(random, 4);
	r->place = place < 2 ? IN_MEMORY : place == 2 || !small_disk[0] ? IN_FOLDER : ON_SMALL_DISK;
}

/* Handlers either jump or nest: a jump out of nested handlers would leave more than one event open. */
static void choose_torment(struct round *r, uint32_t *random)
{
	struct torment *t = &r->torment;
	t->workers = 1 + random_below(random, 6);
	t->ms = 100 + random_below(random, 400);
	t->pause = random_below(random, 2) ? 1 + random_below(random, 200) : 0;
	t->signals = random_below(random, 3) != 0;
	t->jumps = t->signals && random_below(random, 2);
	t->nested = t->signals && !t->jumps && random_below(random, 2);
	t->handler_forks = t->signals && !t->nested && random_below(random, 3) == 0;
	t->forks = random_below(random, 2);
	t->plugin = random_below(random, 2) ? getenv("KYMO_TARGET_STRESS_PLUGIN") : NULL;
	t->subscriber = random_below(random, 2);
	t->categories = random_below(random, 2) ? "stress" : NULL;
	t->short_threads = random_below(random, 8) == 0 ? SWARM : random_below(random, 400);
}

static void choose(struct round *r, uint32_t number)
{
	uint32_t random = number * 2654435761u + 12345;
	*r = (struct round){.number = number, .torment.seed = number * 40503u + 1};
	choose_limits(r, &random);
	choose_torment(r, &random);
	if (random_below(&random, 2)) {
		snprintf(r->session, sizeof(r->session), "%s/out.json",
			 r->place == ON_SMALL_DISK ? small_disk : folder);
		r->torment.session = r->session;
	}
	if (random_below(&random, 4) == 0) {
		r->kill_after_ms = 1 + random_below(&random, 300);
		r->torment.ms = 10000;
	}
}

static void describe(const struct round *r, FILE *out)
{
	static const char *const places[] = {"memory", "folder", "small disk"};
	const struct torment *t = &r->torment;
	fprintf(out,
		"round %u: %u workers, %u short threads, rings %lluk of %lluk in %s%s%s%s%s%s%s%s%s",
		r->number, t->workers, t->short_threads, (unsigned long long)r->ring_bytes >> 10,
		(unsigned long long)r->total_bytes >> 10, places[r->place],
		t->signals ? ", signals" : "", t->jumps ? " that jump" : "",
		t->nested ? " that nest" : "", t->handler_forks ? " that fork" : "",
		t->forks ? ", forks" : "", t->plugin ? ", plugins" : "",
		t->session ? ", session" : "", t->subscriber ? ", subscriber" : "");
	if (r->kill_after_ms)
		fprintf(out, ", killed after %u ms", r->kill_after_ms);
	fputc('\n', out);
}

static int make_memory(void)
{
	const int fd = (int)syscall(SYS_memfd_create, KY_DRUM_NAME, MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, 96 << 20) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return -1;
	return fd;
}

static pid_t begin(const struct round *r, int memory)
{
	fflush(NULL);
	const pid_t pid = fork();
	if (pid != 0)
		return pid;
	alarm(PATIENCE_S);
	ky_limits.categories = "stress";
	ky_limits.ring_bytes = r->ring_bytes;
	ky_limits.total_bytes = r->total_bytes;
	if (r->place == IN_MEMORY)
		ky_limits.fd = memory;
	else
		ky_limits.dir = r->place == IN_FOLDER ? folder : small_disk;
	victim_run(ledger, &r->torment);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       info.si_pid != 0;
}

static void pause_ms(unsigned ms)
{
	const struct timespec pause = {0, ms * 1000000L};
	nanosleep(&pause, NULL);
}

/* ---- the readers ---- */

static bool complain(const struct round *r, const char *reader, const char *what)
{
	describe(r, stderr);
	fprintf(stderr,
		"  %s: %s: %llu events, %llu lost, %llu wrong, %llu twice; recorded %llu, unsure %llu, "
		"lost in the drum %llu\n",
		reader, what, (unsigned long long)tally->events, (unsigned long long)tally->lost,
		(unsigned long long)tally->wrong, (unsigned long long)tally->duplicates,
		(unsigned long long)ledger->recorded, (unsigned long long)ledger->unsure,
		(unsigned long long)ledger->drum_lost);
	return false;
}

/* Check what every reader must hold to. */
static bool is_sound(const struct round *r, const char *reader, uint64_t damaged)
{
	if (damaged)
		return complain(r, reader, "the rings are damaged");
	if (tally->wrong)
		return complain(r, reader, "an event is not as it was written");
	if (tally->duplicates)
		return complain(r, reader, "an event came twice");
	return true;
}

/* Check that nothing is missing that was not counted, when the reader saw all. */
static bool is_complete(const struct round *r, const char *reader, uint64_t events, uint64_t lost)
{
	const uint64_t sum = events + lost;
	return (sum >= ledger->recorded && sum <= ledger->recorded + ledger->unsure) ||
	       complain(r, reader, "the sum is wrong");
}

/* What was committed before the end is there: only the oldest may be overwritten. */
static bool has_the_newest(const struct round *r, const struct ky_drum_facts *facts)
{
	if (facts->lost_ringless)
		return true;
	for (uint32_t i = 0; i < 2 * r->torment.workers; i += 2) {
		const struct tally_stream *s = &tally->streams[i];
		const uint64_t committed = ledger->committed[i];
		if (committed && (s->count == 0 || s->last + 1 < committed))
			return complain(r, "after the end", "a committed event is missing");
		/* With a session a thread moves to larger rings: what the first held may be there after all. */
		if (!r->torment.jumps && !r->torment.session && s->count &&
		    s->last - s->first + 1 != s->count)
			return complain(r, "after the end", "there is a gap");
	}
	return true;
}

static struct ky_drum_file *open_drum(int memory, const char *path, bool newest)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_drum_file *file = NULL;
	struct ky_stream *stream;
	const int error = memory >= 0 ? ky_drum_file_open_fd(&file, memory, "memory", message)
				      : ky_drum_file_open(&file, path, message);
	if (error || ky_drum_file_stream(file, NULL, newest, &stream, message) != 0) {
		ky_drum_file_close(&file);
		return NULL;
	}
	stream->sink = (struct ky_stream_sink){.event = tally_event, .context = tally};
	return file;
}

/* Read all that is there now, as a snapshot does, or a person after the end. */
static bool look_once(const struct round *r, int memory, const char *path, bool ended)
{
	struct ky_drum_facts facts;
	tally_clear(tally);
	struct ky_drum_file *file = open_drum(memory, path, false);
	if (!file)
		return !ended || !ledger->ready ||
		       complain(r, "after the end", "the drum cannot be read");
	ky_drum_file_read(file, true);
	ky_drum_file_facts(file, &facts);
	const char *const reader = ended ? "after the end" : "snapshot";
	bool good = is_sound(r, reader, facts.damaged);
	if (good && ended)
		good = has_the_newest(r, &facts);
	if (good && ended && ledger->done)
		good = is_complete(r, reader, tally->events,
				   facts.lost_overwritten + facts.lost_ringless +
					   facts.lost_nested);
	ky_drum_file_close(&file);
	return good;
}

/* Follow the process until it ends. */
static bool follow(const struct round *r, pid_t pid, int memory)
{
	struct ky_drum_facts facts;
	const uint64_t kill_at = now_ms() + r->kill_after_ms;
	struct ky_drum_file *file = NULL;
	tally_clear(tally);
	while (!has_ended(pid)) {
		if (memory >= 0 && !file)
			file = open_drum(memory, NULL, false);
		if (file)
			ky_drum_file_read(file, false);
		if (r->kill_after_ms && ledger->ready && now_ms() > kill_at)
			kill(pid, SIGKILL);
		pause_ms(2);
	}
	if (!file)
		return true;
	ky_drum_file_read(file, true);
	ky_drum_file_facts(file, &facts);
	bool good = is_sound(r, "recorder", facts.damaged);
	if (good && ledger->done)
		good = is_complete(r, "recorder", tally->events,
				   facts.lost_overwritten + facts.lost_ringless +
					   facts.lost_nested);
	ky_drum_file_close(&file);
	return good;
}

static bool check_session(const struct round *r)
{
	tally_clear(tally);
	if (!r->torment.session)
		return true;
	const bool there = tally_json(tally, r->session);
	unlink(r->session);
	if (!there)
		return true;
	if (!is_sound(r, "session", 0))
		return false;
	if (!ledger->done || ledger->session_error)
		return !ledger->session_error || r->place == ON_SMALL_DISK ||
		       complain(r, "session", strerror((int)ledger->session_error));
	if (tally->events != ledger->session_events)
		return complain(r, "session", "the file has not what the session says");
	return is_complete(r, "session", tally->events, ledger->session_lost);
}

static bool check_subscriber(const struct round *r)
{
	if (!r->torment.subscriber || !ledger->done)
		return true;
	tally_clear(tally);
	tally->events = ledger->subscriber_events;
	tally->lost = ledger->subscriber_lost;
	tally->wrong = ledger->subscriber_wrong;
	/* Losses that the drum counts, and no ring, may not reach subscribers. */
	const uint64_t sum = tally->events + tally->lost;
	const uint64_t known = sum < ledger->recorded ? ledger->drum_lost : 0;
	return is_sound(r, "subscriber", 0) &&
	       is_complete(r, "subscriber", tally->events, tally->lost + known);
}

/* ---- all rounds ---- */

static bool ended_well(const struct round *r, int status)
{
	if (r->kill_after_ms && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (status == 0 && ledger->forks_wrong == 0)
		return true;
	describe(r, stderr);
	fprintf(stderr, "  the process ended with %#x, %u of its %u children failed\n", status,
		ledger->forks_wrong, ledger->forks);
	return false;
}

/* Remove the drums in a folder: those of forked children, too. */
static void sweep(const char *path)
{
	DIR *const dir = path[0] ? opendir(path) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, "kymo-", 5) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static bool run_round(uint32_t number, uint64_t *events)
{
	struct round r;
	char path[160];
	int status = -1;
	choose(&r, number);
	memset(ledger, 0, sizeof(*ledger));
	const int memory = r.place == IN_MEMORY ? make_memory() : -1;
	if (getenv("KYMO_STRESS_VERBOSE"))
		describe(&r, stdout);
	const pid_t pid = begin(&r, memory);
	snprintf(path, sizeof(path), "%s/kymo-%d.drum", r.place == IN_FOLDER ? folder : small_disk,
		 (int)pid);
	pause_ms(1 + number % 20);
	bool good = look_once(&r, memory, path, false);
	good &= follow(&r, pid, memory);
	waitpid(pid, &status, 0);
	good &= ended_well(&r, status);
	good &= look_once(&r, memory, path, true);
	*events += tally->events;
	good &= check_session(&r) && check_subscriber(&r);
	sweep(folder);
	sweep(small_disk);
	if (memory >= 0)
		close(memory);
	return good;
}

static void mount_small_disk(void)
{
	snprintf(small_disk, sizeof(small_disk), "%s/small", folder);
	if (mkdir(small_disk, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("tmpfs", small_disk, "tmpfs", 0, "size=8m") == 0)
		return;
	printf("no rounds on a full disk: a tmpfs cannot be mounted: %s\n", strerror(errno));
	rmdir(small_disk);
	small_disk[0] = '\0';
}

int main(int argc, char **argv)
{
	const char *const asked = getenv("KYMO_STRESS_SECONDS");
	const uint64_t seconds = strtoul(asked ? asked : argc > 1 ? argv[1] : "20", NULL, 10);
	const uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	const uint64_t until = now_ms() + seconds * 1000;
	uint64_t events = 0;
	uint32_t rounds = 0, failed = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	tally = tally_open();
	if (ledger == MAP_FAILED || !tally || !mkdtemp(folder)) {
		perror(folder);
		return 77;
	}
	mount_small_disk();
	do
		failed += !run_round(first + rounds++, &events);
	while (now_ms() < until);
	if (small_disk[0]) {
		umount(small_disk);
		rmdir(small_disk);
	}
	rmdir(folder);
	printf("%u rounds, %llu events read after the end, %u failed\n", rounds,
	       (unsigned long long)events, failed);
	return failed != 0;
}
