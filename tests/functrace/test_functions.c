/* SPDX-License-Identifier: MIT */
/*
 * test_functions.c: the functions of ELF files: of this program, of the same without symbols, of libraries from
 * elsewhere; and the selection of them.
 */
#include "functrace/functions.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

/* ---- functions of all kinds; more are in kinds.S ---- */

/* Never inlined nor left out; their work does not matter. */
#define KEPT __attribute__((noinline, used))

KEPT int kind_plain(int a);
KEPT int kind_plain(int a)
{
	return a * 3 + (a > 5 ? kind_plain(a - 1) : 0);
}

KEPT __attribute__((patchable_function_entry(5))) int kind_nops(int a);
KEPT __attribute__((patchable_function_entry(5))) int kind_nops(int a)
{
	return a * 5;
}

int kind_other_name(int a) __attribute__((alias("kind_plain")));

/* ---- reading ---- */

static struct ky_functions *read_file(const char *path, bool lines)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_functions *functions = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (ky_functions_read(&functions, fd, path, lines, message) != 0)
		fail_msg("%s", message);
	close(fd);
	return functions;
}

static const struct ky_function *find(const struct ky_functions *functions, const char *linked)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		if (strcmp(functions->functions[i].linked, linked) == 0)
			return &functions->functions[i];
	}
	return NULL;
}

static const struct ky_function *at(const struct ky_functions *functions, uint64_t address)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		if (functions->functions[i].address == address)
			return &functions->functions[i];
	}
	return NULL;
}

static void functions_have_names_sizes_and_ways(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", false);
	(void)state;
	const struct ky_function *plain = find(functions, "kind_plain");
	assert_non_null(plain);
	assert_true(plain->bytes > 5);
	assert_int_equal(plain->how, KY_FUNCTION_PATCH);
	assert_null(find(functions, "kind_other_name")); /* the longer name of the same */
	const struct ky_function *nops = find(functions, "kind_nops");
	assert_non_null(nops);
	assert_int_equal(nops->how, KY_FUNCTION_NOPS);
	assert_int_equal(nops->prologue, 5);
	const struct ky_function *sled = find(functions, "kind_sled");
	assert_non_null(sled);
	assert_int_equal(sled->how, KY_FUNCTION_SLED);
	assert_int_equal(sled->at, 0);
	const struct ky_function *no_size = find(functions, "kind_no_size");
	assert_non_null(no_size);
	assert_true(no_size->bytes >= 9 && no_size->bytes <= 16);
	ky_functions_free(&functions);
	assert_null(functions);
}

static void pieces_are_no_functions(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", false);
	(void)state;
	assert_non_null(find(functions, "kind_frame"));
	assert_null(find(functions, "kind_middle"));
	assert_null(find(functions, "kind_frame.cold"));
	static const char *const leaves[] = {"kind_leaf", "kind_leaf_too"};
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		const struct ky_function *leaf = find(functions, leaves[i]);
		assert_int_equal(leaf->how, KY_FUNCTION_PATCH);
		assert_int_equal(leaf[1].linked[0], '0'); /* its piece */
		assert_int_equal(leaf[1].why, KY_WHY_JUMPED_INTO);
	}
	ky_functions_free(&functions);
}

/* What libdw says of one description holds for the others of its CIE, and for those of no other. */
static void each_cie_is_judged_for_itself(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", false);
	(void)state;
	assert_non_null(find(functions, "kind_cie_call"));
	assert_null(find(functions, "kind_cie_signal"));
	assert_null(find(functions, "kind_cie_none"));
	assert_non_null(find(functions, "kind_cie_call_again"));
	ky_functions_free(&functions);
}

static void what_must_not_be_hooked_is_not(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", false);
	(void)state;
	assert_int_equal(find(functions, "setjmp")->why, KY_WHY_RUNTIME);
	assert_int_equal(find(functions, "_start")->why, KY_WHY_RUNTIME);
	assert_int_equal(find(functions, "kind_outermost")->why, KY_WHY_RUNTIME);
	assert_int_equal(find(functions, "kind_tail")->why, KY_WHY_RUNTIME);
	assert_int_equal(find(functions, "Builtins_42")->why, KY_WHY_JIT);
	assert_int_equal(functions->builtins.from, find(functions, "Builtins_00")->address);
	assert_true(functions->builtins.bytes >= 63 * 16 + 7);
	ky_functions_free(&functions);
}

static void most_must_be_compiled_for_it(void **state)
{
	struct ky_function some[] = {{.linked = "a", .how = KY_FUNCTION_NOPS},
				     {.linked = "b", .how = KY_FUNCTION_SLED},
				     {.linked = "c", .how = KY_FUNCTION_PATCH},
				     {.linked = "_start", .how = KY_FUNCTION_PATCH},
				     {.linked = "frame_dummy", .how = KY_FUNCTION_PATCH}};
	struct ky_functions all = {.functions = some, .count = 5};
	(void)state;
	assert_true(ky_functions_are_ready(&all)); /* functions of every program do not count */
	some[0].how = KY_FUNCTION_PATCH;
	assert_false(ky_functions_are_ready(&all));
	all.calls_cyg = true;
	assert_true(ky_functions_are_ready(&all));
}

static void functions_are_in_order(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", false);
	(void)state;
	for (uint32_t i = 1; i < functions->count; i++)
		assert_true(functions->functions[i - 1].address < functions->functions[i].address);
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		uint64_t left;
		assert_non_null(ky_functions_code(functions, function->address, &left));
		assert_true(function->bytes <= left);
		assert_int_equal(function->how == KY_FUNCTION_NOT, function->why != KY_WHY_NONE);
	}
	ky_functions_free(&functions);
}

static void lines_are_told_where_debug_information_is(void **state)
{
	struct ky_functions *functions = read_file("/proc/self/exe", true);
	uint32_t known = 0;
	(void)state;
	for (uint32_t i = 0; i < functions->count; i++)
		known += functions->functions[i].file != NULL;
	const struct ky_function *plain = find(functions, "kind_plain");
	if (known) {
		assert_non_null(plain->file);
		assert_non_null(strstr(plain->file, "test_functions.c"));
		assert_true(plain->line > 30 && plain->line < 60);
	}
	ky_functions_free(&functions);
	/* built without */
	if (!known)
		skip();
}

/* ---- without symbols ---- */

static bool run(const char *const *argv)
{
	pid_t pid;
	int status = 1;
	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char folder[64];

static const char *in_folder(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *self_path(void)
{
	static char path[4096];
	const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(bytes > 0);
	path[bytes] = '\0';
	return path;
}

static void stripped_files_have_the_same_functions(void **state)
{
	(void)state;
	const char *const argv[] = {"strip", "-o", in_folder("stripped"), self_path(), NULL};
	/* no binutils here */
	if (!run(argv))
		skip();
	struct ky_functions *whole = read_file("/proc/self/exe", false);
	struct ky_functions *stripped = read_file(in_folder("stripped"), false);
	const struct ky_function *plain = find(whole, "kind_plain");
	const struct ky_function *same = at(stripped, plain->address);
	assert_non_null(same);
	assert_int_equal(same->bytes, plain->bytes);
	assert_int_equal(same->how, plain->how);
	assert_int_equal(same->prologue, plain->prologue);
	char name[64];
	snprintf(name, sizeof(name), "stripped+0x%llx", (unsigned long long)plain->address);
	assert_string_equal(same->name, name);
	assert_string_equal(same->linked, name + strlen("stripped+"));
	assert_int_equal(at(stripped, find(whole, "_start")->address)->why, KY_WHY_RUNTIME);
	assert_int_equal(at(stripped, find(whole, "kind_nops")->address)->how, KY_FUNCTION_NOPS);
	const struct ky_code_range *builtins = &stripped->builtins;
	assert_true(builtins->from <= whole->builtins.from);
	assert_true(builtins->from + builtins->bytes >=
		    whole->builtins.from + whole->builtins.bytes);
	ky_functions_free(&whole);
	ky_functions_free(&stripped);
	unlink(in_folder("stripped"));
}

/* A switch of a program for one address; its table is in the same segment as the code. */
static void tables_beside_the_code_are_looked_through(void **state)
{
	static const char source[] = ".globl _start\n"
				     ".type switch, @function\n"
				     "_start: call switch\n"
				     "switch: push %rbx\n"
				     "again: mov %edi, %ebx\n"
				     "mov $1, %eax\n"
				     "jmp *table(,%rbx,8)\n"
				     "end: pop %rbx\n"
				     "ret\n"
				     ".size switch, . - switch\n"
				     ".section .rodata\n"
				     ".balign 8\n"
				     "table: .quad end, again\n";
	char path[128], program[128];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("switch.s"));
	snprintf(program, sizeof(program), "%s", in_folder("switch"));
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, source, strlen(source)), strlen(source));
	close(fd);
	const char *const argv[] = {"cc",
				    "-nostdlib",
				    "-static",
				    "-no-pie",
				    "-Wl,-z,noseparate-code",
				    "-Wl,-z,noexecstack",
				    "-o",
				    program,
				    path,
				    NULL};
	const bool made = run(argv);
	unlink(path);
	/* no compiler here */
	if (!made)
		skip();
	struct ky_functions *functions = read_file(program, false);
	assert_int_equal(functions->code_count, 1);
	assert_int_equal(find(functions, "switch")->why, KY_WHY_JUMPED_INTO);
	ky_functions_free(&functions);
	unlink(program);
}

/* ---- files from elsewhere ---- */

static const char *libc_path(void)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					    "/usr/lib/libc.so.6"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (access(paths[i], R_OK) == 0)
			return paths[i];
	}
	return NULL;
}

static void most_of_libc_can_be_traced(void **state)
{
	(void)state;
	if (!libc_path())
		skip();
	struct ky_functions *functions = read_file(libc_path(), false);
	uint32_t traced = 0;
	for (uint32_t i = 0; i < functions->count; i++)
		traced += functions->functions[i].how != KY_FUNCTION_NOT;
	assert_true(functions->count > 2000);
	assert_true(traced > functions->count * 95 / 100);
	static const char *const kept[] = {"vfork", "_setjmp", "__sigsetjmp", "swapcontext",
					   "dlsym"};
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		const struct ky_function *function = find(functions, kept[i]);
		assert_true(!function || function->why == KY_WHY_RUNTIME);
	}
	assert_non_null(find(functions, "puts"));
	assert_int_equal(functions->is_static, false);
	ky_functions_free(&functions);
}

static void the_loader_is_left_alone(void **state)
{
	static const char path[] = "/lib64/ld-linux-x86-64.so.2";
	(void)state;
	if (access(path, R_OK) != 0)
		skip();
	struct ky_functions *functions = read_file(path, false);
	for (uint32_t i = 0; i < functions->count; i++)
		assert_int_equal(functions->functions[i].why, KY_WHY_RUNTIME);
	assert_true(functions->debug_state != 0);
	ky_functions_free(&functions);
}

static void other_files_are_refused_in_words(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_functions *functions;
	(void)state;
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ky_functions_read(&functions, null, "/dev/null", false, message),
			 -ENOEXEC);
	assert_null(functions);
	assert_string_equal(message,
			    "cannot find the functions of /dev/null: it is not an ELF file");
	close(null);
}

/* Its names would be searched from the end of their table, each one. */
static void tables_of_names_without_an_end_are_refused(void **state)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_functions *functions;
	Elf64_Ehdr head;
	Elf64_Shdr names;
	char path[128];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("copy"));
	const char *const argv[] = {"cp", self_path(), path, NULL};
	assert_true(run(argv));
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	const off_t at = (off_t)(head.e_shoff + (uint64_t)head.e_shstrndx * sizeof(names));
	assert_int_equal(pread(fd, &names, sizeof(names), at), sizeof(names));
	assert_int_equal(pwrite(fd, "a", 1, (off_t)(names.sh_offset + names.sh_size - 1)), 1);
	assert_int_equal(ky_functions_read(&functions, fd, path, false, message), -ENOEXEC);
	assert_null(functions);
	close(fd);
	unlink(path);
}

/* ---- the cache ---- */

static unsigned long long digest(const struct ky_functions *functions)
{
	unsigned long long sum = functions->count;
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		sum = sum * 31 + function->address;
		sum = sum * 31 + function->how * 7u + function->why * 11u + function->at * 13u +
		      function->prologue;
	}
	return sum;
}

/* Return the only file in the cache, opened for writing; -1: none. */
static int open_cached(void)
{
	DIR *names = opendir(in_folder("kymo/functions"));
	char path[512] = "";
	if (!names)
		return -1;
	for (struct dirent *name = readdir(names); name; name = readdir(names)) {
		if (name->d_name[0] != '.')
			snprintf(path, sizeof(path), "%s/%s", in_folder("kymo/functions"),
				 name->d_name);
	}
	closedir(names);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void remove_cache(void)
{
	const char *const argv[] = {"rm", "-rf", in_folder("kymo"), NULL};
	assert_true(run(argv));
}

static unsigned long long read_digest(const char *path)
{
	struct ky_functions *functions = read_file(path, false);
	const unsigned long long result = digest(functions);
	ky_functions_free(&functions);
	return result;
}

static void a_cache_tells_the_same_and_a_damaged_one_nothing(void **state)
{
	(void)state;
	if (!libc_path())
		skip();
	const unsigned long long without = read_digest(libc_path());
	setenv("XDG_CACHE_HOME", folder, 1);
	assert_true(read_digest(libc_path()) == without); /* writes it */
	int fd = open_cached();
	assert_true(fd >= 0);
	assert_true(read_digest(libc_path()) == without); /* reads it */
	/* A cache with wrong bytes, that is cut off, or that others may write, is not used. */
	const uint8_t wrong[] = {1, 0, 0, 9};
	assert_int_equal(pwrite(fd, wrong, sizeof(wrong), 1000), sizeof(wrong));
	assert_true(read_digest(libc_path()) == without);
	close(fd);
	fd = open_cached();
	assert_int_equal(ftruncate(fd, 500), 0);
	assert_true(read_digest(libc_path()) == without);
	close(fd);
	fd = open_cached();
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_true(read_digest(libc_path()) == without);
	close(fd);
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	remove_cache();
}

/* Make the first instruction of "puts" one that cannot be moved: int $0x80. */
static void change_puts(const char *path)
{
	struct ky_functions *functions = read_file(path, false);
	const struct ky_function *puts = find(functions, "puts");
	struct stat status;
	uint64_t left;
	assert_non_null(puts);
	assert_int_equal(puts->how, KY_FUNCTION_PATCH);
	const uint8_t *code = ky_functions_code(functions, puts->address, &left);
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0 && left >= 32);
	const size_t bytes = (size_t)status.st_size;
	uint8_t *file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(file != MAP_FAILED);
	uint8_t *place = memmem(file, bytes, code, 32);
	assert_non_null(place);
	memcpy(place + puts->at, "\xcd\x80", 2);
	munmap(file, bytes);
	close(fd);
	ky_functions_free(&functions);
}

static void a_cache_is_not_for_other_code_of_the_same_build_id(void **state)
{
	char path[128];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("copy"));
	const char *const argv[] = {"cp", libc_path(), path, NULL};
	if (!libc_path() || !run(argv))
		skip();
	setenv("XDG_CACHE_HOME", folder, 1);
	change_puts(path);
	struct ky_functions *functions = read_file(path, false);
	assert_int_equal(find(functions, "puts")->why, KY_WHY_STRANGE);
	ky_functions_free(&functions);
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	unlink(path);
	remove_cache();
}

/* In a mount namespace it can have libc's path, and a word in its code can make the hash that of libc's. */
static void a_program_of_another_user_is_not_in_the_cache(void **state)
{
	char path[128];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("copy"));
	const char *const argv[] = {"cp", libc_path(), path, NULL};
	if (geteuid() != 0 || !libc_path() || !run(argv))
		skip();
	setenv("XDG_CACHE_HOME", folder, 1);
	assert_int_equal(chown(path, 54321, 54321), 0);
	(void)read_digest(path);
	assert_int_equal(open_cached(), -1);
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chmod(path, 0666), 0);
	(void)read_digest(path);
	assert_int_equal(open_cached(), -1);
	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	unlink(path);
	remove_cache();
}

/* ---- for several processes ---- */

static const struct ky_functions *share(const char *path, bool lines)
{
	char message[KY_MESSAGE_BYTES];
	const struct ky_functions *functions = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ky_functions_share(&functions, fd, path, lines, message), 0);
	close(fd);
	return functions;
}

static void a_file_is_read_once_for_all_who_want_it(void **state)
{
	(void)state;
	const struct ky_functions *first = share("/proc/self/exe", false);
	const struct ky_functions *second = share("/proc/self/exe", false);
	const struct ky_functions *lined = share("/proc/self/exe", true);
	assert_ptr_equal(first, second);
	assert_ptr_not_equal(first, lined);
	assert_null(find(first, "kind_plain")->file);
	ky_functions_unshare(&first);
	assert_null(first);
	assert_non_null(find(second, "kind_plain"));
	ky_functions_unshare(&second);
	/* Those with lines serve all; they are unused now, and still there. */
	const struct ky_functions *again = lined;
	ky_functions_unshare(&lined);
	lined = share("/proc/self/exe", false);
	assert_ptr_equal(lined, again);
	ky_functions_shared_clear();
	assert_non_null(find(lined, "kind_plain"));
	ky_functions_unshare(&lined);
	ky_functions_shared_clear();
}

static void a_file_that_has_changed_is_read_anew(void **state)
{
	char path[128];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("copy"));
	const char *const argv[] = {"cp", self_path(), path, NULL};
	const char *const touch[] = {"touch", "-d", "2001-02-03", path, NULL};
	assert_true(run(argv));
	const struct ky_functions *before = share(path, false);
	assert_true(run(touch));
	const struct ky_functions *after = share(path, false);
	assert_ptr_not_equal(before, after);
	ky_functions_unshare(&before);
	ky_functions_unshare(&after);
	ky_functions_shared_clear();
	unlink(path);
}

static void of_files_that_nobody_uses_the_last_are_kept(void **state)
{
	char message[KY_MESSAGE_BYTES], name[16];
	const struct ky_functions *used = share("/proc/self/exe", false), *one;
	const int fd = open(self_path(), O_RDONLY | O_CLOEXEC);
	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(ky_functions_share(&one, fd, name, false, message), 0);
		ky_functions_unshare(&one);
	}
	close(fd);
	assert_int_equal(ky_functions_shared_clear(), 64);
	assert_non_null(find(used, "kind_plain"));
	ky_functions_unshare(&used);
	assert_int_equal(ky_functions_shared_clear(), 1);
}

/* ---- selections ---- */

static bool wants(const char *list, const char *name)
{
	char message[KY_MESSAGE_BYTES];
	const struct ky_functions module = {.path = "/usr/lib/libnet.so.1"};
	const struct ky_function function = {
		.linked = "_ZN3net4recvEi", .name = name, .file = "/src/net/recv.cc", .bytes = 40};
	struct ky_selection *selection;
	assert_int_equal(ky_selection_parse(&selection, list, 0, message), 0);
	const bool result = ky_selection_wants(selection, &module, &function);
	ky_selection_free(&selection);
	return result;
}

static void selections(void **state)
{
	(void)state;
	assert_true(wants(NULL, "f"));
	assert_true(wants("", "f"));
	assert_true(wants("f", "f"));
	assert_false(wants("f", "g"));
	assert_true(wants("f*, g", "g"));
	assert_true(wants("-f", "g"));
	assert_false(wants("-f", "f"));
	assert_false(wants("*,-f", "f"));
	assert_true(wants("-*,f", "f"));
	assert_true(wants("net::recv", "net::recv(int)"));
	assert_true(wants("net::recv(int)", "net::recv(int)"));
	assert_true(wants("_ZN3net*", "net::recv(int)"));
	assert_true(wants("f(int, char)", "f(int, char)"));
	assert_true(wants("std::map<int, int>::find", "std::map<int, int>::find(int const&)"));
	assert_true(wants("ns::(anonymous namespace)::f", "ns::(anonymous namespace)::f(int)"));
	assert_true(wants("f::operator()", "f::operator()(int (*)(char)) const"));
	assert_false(wants("ns::", "ns::(anonymous namespace)::f(int)"));
	assert_true(wants("operator<<,f", "f"));
	assert_true(wants("a::operator<,std::map<int, int>::find", "std::map<int, int>::find()"));
	assert_true(wants("module:libnet.so*", "f"));
	assert_true(wants("module:/usr/lib/*", "f"));
	assert_false(wants("module:libz*", "f"));
	assert_true(wants("-module:libz*", "f"));
	assert_true(wants("file:recv.cc", "f"));
	assert_true(wants("file:*/net/*", "f"));
	assert_false(wants("module:libnet*,-file:*.cc", "f"));
}

static void selections_by_size_and_what_they_need(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	const struct ky_functions module = {.path = "/bin/a"};
	const struct ky_function small = {.linked = "f", .name = "f", .bytes = 15};
	const struct ky_function large = {.linked = "f", .name = "f", .bytes = 16};
	struct ky_selection *selection;
	(void)state;
	assert_int_equal(ky_selection_parse(&selection, "f", 16, message), 0);
	assert_false(ky_selection_wants(selection, &module, &small));
	assert_true(ky_selection_wants(selection, &module, &large));
	assert_false(ky_selection_needs_lines(selection));
	ky_selection_free(&selection);
	assert_int_equal(ky_selection_parse(&selection, "file:a.c", 0, message), 0);
	assert_true(ky_selection_needs_lines(selection));
	assert_false(ky_selection_wants(selection, &module, &large)); /* no file known */
	ky_selection_free(&selection);
	assert_int_equal(ky_selection_parse(&selection, "f,-", 0, message), -EINVAL);
	assert_null(selection);
	assert_non_null(strstr(message, "the glob is empty"));
}

static int make_folder(void **state)
{
	const char *base = getenv("TMPDIR");
	(void)state;
	snprintf(folder, sizeof(folder), "%s/kymo-functions-XXXXXX",
		 base && strlen(base) < 30 ? base : "/tmp");
	setenv("XDG_CACHE_HOME", "/dev/null", 1); /* where no cache can be */
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_names_sizes_and_ways),
		cmocka_unit_test(pieces_are_no_functions),
		cmocka_unit_test(each_cie_is_judged_for_itself),
		cmocka_unit_test(what_must_not_be_hooked_is_not),
		cmocka_unit_test(most_must_be_compiled_for_it),
		cmocka_unit_test(functions_are_in_order),
		cmocka_unit_test(lines_are_told_where_debug_information_is),
		cmocka_unit_test(stripped_files_have_the_same_functions),
		cmocka_unit_test(tables_beside_the_code_are_looked_through),
		cmocka_unit_test(most_of_libc_can_be_traced),
		cmocka_unit_test(the_loader_is_left_alone),
		cmocka_unit_test(other_files_are_refused_in_words),
		cmocka_unit_test(tables_of_names_without_an_end_are_refused),
		cmocka_unit_test(a_cache_tells_the_same_and_a_damaged_one_nothing),
		cmocka_unit_test(a_cache_is_not_for_other_code_of_the_same_build_id),
		cmocka_unit_test(a_program_of_another_user_is_not_in_the_cache),
		cmocka_unit_test(a_file_is_read_once_for_all_who_want_it),
		cmocka_unit_test(a_file_that_has_changed_is_read_anew),
		cmocka_unit_test(of_files_that_nobody_uses_the_last_are_kept),
		cmocka_unit_test(selections),
		cmocka_unit_test(selections_by_size_and_what_they_need),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
