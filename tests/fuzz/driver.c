/* SPDX-License-Identifier: MIT */
/*
 * driver.c: runs a fuzz target where libFuzzer is not: each file of a corpus as it is, then a fixed
 * number of mutations of them.
 *
 *	fuzz_x [-n MUTATIONS] [-s SEED] [-c CASE] FILE-OR-FOLDER...
 *
 * Mutation number i depends on the corpus, the seed and i alone. When the target dies, the driver
 * names the case, and -c runs that one again. Link a target with -fsanitize=fuzzer instead of this
 * file to let libFuzzer search. Every input is in memory of exactly its size, so that the address
 * sanitizer sees the first byte read beyond it.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX 65536u
#define FILES_MAX 4096u
#define STACKED_MAX 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
	uint8_t *data;
	size_t bytes;
};

static struct input corpus[FILES_MAX];
static size_t corpus_count;
static uint64_t random_state;
static char case_text[64] = "none yet";

static uint64_t random_next(void)
{
	random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
	uint64_t z = random_state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static size_t random_below(size_t limit)
{
	return limit ? (size_t)(random_next() % limit) : 0;
}

static void tell_case(void)
{
	static const char head[] = "fuzz: died in ";
	if (write(STDERR_FILENO, head, sizeof(head) - 1) < 0 ||
	    write(STDERR_FILENO, case_text, strlen(case_text)) < 0 ||
	    write(STDERR_FILENO, "\n", 1) < 0)
		_exit(1);
}

static void on_signal(int number)
{
	tell_case();
	signal(number, SIG_DFL);
	raise(number);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void corpus_add_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_MAX);

	if (!file || !data)
		fail(path);
	if (corpus_count < FILES_MAX)
		corpus[corpus_count++] = (struct input){data, fread(data, 1, INPUT_MAX, file)};
	else
		free(data);
	fclose(file);
}

static void corpus_add(const char *path)
{
	struct stat status;
	struct dirent **names;
	char full[4096];

	if (stat(path, &status) != 0)
		fail(path);
	if (!S_ISDIR(status.st_mode)) {
		corpus_add_file(path);
		return;
	}
	const int count = scandir(path, &names, NULL, alphasort);
	if (count < 0)
		fail(path);
	for (int i = 0; i < count; i++) {
		const int length = snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && length < (int)sizeof(full))
			corpus_add_file(full);
		free(names[i]);
	}
	free(names);
}

static void run(const uint8_t *data, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		fail("malloc");
	if (bytes)
		memcpy(copy, data, bytes);
	/* At the end of the block, so that an empty input has no byte either. */
	(void)LLVMFuzzerTestOneInput(bytes ? copy : copy + 1, bytes);
	free(copy);
}

static void insert(struct input *input, const uint8_t *from, size_t bytes)
{
	const size_t at = random_below(input->bytes + 1);

	if (bytes > INPUT_MAX - input->bytes)
		return;
	memmove(input->data + at + bytes, input->data + at, input->bytes - at);
	memcpy(input->data + at, from, bytes);
	input->bytes += bytes;
}

static void erase(struct input *input)
{
	const size_t at = random_below(input->bytes);
	const size_t bytes = 1 + random_below(input->bytes - at);

	memmove(input->data + at, input->data + at + bytes, input->bytes - at - bytes);
	input->bytes -= bytes;
}

static void splice(struct input *input)
{
	const struct input *other = &corpus[random_below(corpus_count)];
	const size_t at = random_below(other->bytes);
	const size_t bytes = random_below(other->bytes - at);

	insert(input, other->data + at, bytes);
}

static void mutate_once(struct input *input)
{
	static const uint8_t edges[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff, '%', '*', '"', '\n'};
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)random_next();
	const unsigned choice = (unsigned)random_below(7);
	if (choice == 0 || input->bytes == 0)
		insert(input, bytes, 1 + random_below(sizeof(bytes)));
	else if (choice == 1)
		input->data[random_below(input->bytes)] ^= (uint8_t)(1u << random_below(8));
	else if (choice == 2)
		input->data[random_below(input->bytes)] = bytes[0];
	else if (choice == 3)
		input->data[random_below(input->bytes)] = edges[random_below(sizeof(edges))];
	else if (choice == 4)
		erase(input);
	else if (choice == 5)
		input->bytes = random_below(input->bytes);
	else
		splice(input);
}

static void run_mutation(uint64_t seed, uint64_t number)
{
	static uint8_t data[INPUT_MAX];
	struct input input = {data, 0};

	random_state = seed * 0x2545f4914f6cdd1du + number;
	const struct input *base = &corpus[random_below(corpus_count)];
	memcpy(data, base->data, base->bytes);
	input.bytes = base->bytes;
	for (size_t n = 1 + random_below(STACKED_MAX); n > 0; n--)
		mutate_once(&input);
	snprintf(case_text, sizeof(case_text), "mutation %llu of seed %llu",
		 (unsigned long long)number, (unsigned long long)seed);
	run(data, input.bytes);
}

static void run_corpus(void)
{
	for (size_t i = 0; i < corpus_count; i++) {
		snprintf(case_text, sizeof(case_text), "file %zu of the corpus", i + 1);
		run(corpus[i].data, corpus[i].bytes);
	}
}

int main(int argc, char **argv)
{
	unsigned long long mutations = 20000;
	unsigned long long seed = 1;
	unsigned long long first = 0;
	bool single = false;
	int option;

	while ((option = getopt(argc, argv, "n:s:c:")) != -1) {
		const unsigned long long value = optarg ? strtoull(optarg, NULL, 0) : 0;
		if (option == 'n') {
			mutations = value;
		} else if (option == 's') {
			seed = value;
		} else if (option == 'c') {
			single = true;
			first = value;
		} else {
			return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		corpus_add(argv[i]);
	if (corpus_count == 0)
		corpus[corpus_count++] = (struct input){calloc(1, 1), 0};
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(tell_case);
	else
		signal(SIGSEGV, on_signal);
	signal(SIGABRT, on_signal);
	if (!single)
		run_corpus();
	for (uint64_t i = first; i < (single ? first + 1 : mutations); i++)
		run_mutation(seed, i);
	for (size_t i = 0; i < corpus_count; i++)
		free(corpus[i].data);
	return 0;
}
