#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unharmed.py KYMO [NAME...]: programs that do what few programs do, and that tracing must not harm: output and exit code are those
of the program alone, and the calls that can be seen are seen.

Exit 1 when a check failed, 77 when nothing could run."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import traced  # noqa: E402  (beside this folder)

TORTURE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "torture")


def compiled(out, *words):
    """Report whether the compiler is there and can make it."""
    return bool(shutil.which(words[0])) and subprocess.run([*words, "-o", out], capture_output=True, check=False).returncode == 0


def libraries_in_turn(folder):
    """dlopen, dlclose, dlopen of another library at the same address: each has stubs of its own."""
    source, ran = f"{TORTURE}/turns.c", 0
    for compiler in ("gcc", "clang"):
        made = [compiled(f"{folder}/lib{name.lower()}.so", compiler, "-O2", "-shared", "-fPIC", f"-D{name}", source)
                for name in ("FIRST", "SECOND")]
        if not all(made) or not compiled(f"{folder}/turns", compiler, "-O2", source, "-ldl"):
            continue
        words = [f"{folder}/turns", f"{folder}/libfirst.so", f"{folder}/libsecond.so"]
        path = traced.same_as_bare(folder, words, "--functions=module:libfirst*,module:libsecond*", "--engine", "patch")
        for library in ("first", "second"):
            seen = traced.number(path, f"select count(*) from slice where name like '{library}!_%' escape '!'")
            traced.check(f"{compiler}: all calls of {library}", seen == 10 * 100 * 16 or traced.lost(path), seen)
        ran += 1
    return None if ran else "no compiler here"


THROWS = """#include <cstdio>
#include <stdexcept>
#include <string>
__attribute__((noinline)) int deep(int n)
{
	if (!n)
		throw std::runtime_error("bottom");
	std::string text(n, 'x');
	return deep(n - 1) + (int)text.size();
}
int main()
{
	int caught = 0;
	for (int i = 0; i < 50; i++) {
		try {
			caught += deep(i % 10);
		} catch (const std::exception &e) {
			caught += e.what()[0];
		}
	}
	std::printf("%d\\n", caught);
}
"""
# A program whose function is called, and unwound, by a library that is loaded after the function was called.
HOST = """#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) int through(int (*call)(int), int n)
{
	int result = call(n);
	__asm__ volatile("" : "+r"(result));
	return result;
}
static int same(int n)
{
	return n;
}
int main(int count, char **words)
{
	int (*run)(int (*)(int (*)(int), int));
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += through(same, i);
	void *library = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
	void *symbol = library ? dlsym(library, "run") : NULL;
	if (!symbol)
		return 1;
	memcpy(&run, &symbol, sizeof(run));
	for (int i = 0; i < 10; i++)
		sum += run(through);
	printf("%d\\n", sum);
	return 0;
}
"""
GUEST = """#include <stdexcept>
static int thrower(int n)
{
	if (n > 3)
		throw std::runtime_error("much");
	return n;
}
extern "C" int run(int (*through)(int (*)(int), int))
{
	int sum = 0;
	for (int i = 0; i < 8; i++) {
		try {
			sum += through(thrower, i);
		} catch (const std::exception &) {
			sum += 100;
		}
	}
	return sum;
}
"""
STATIC = ("-static-libgcc", "-static-libstdc++", "-s")


def written(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check_reason(folder, words, reason):
    """The summary has the reason why returns are not hooked, and doctor has it."""
    done = traced.kymo("run", "--functions", "--engine", "patch", "-o", f"{folder}/why.kymo", "--", *words)
    traced.check("the reason in the summary", reason in done.stderr.split("kymo: ")[-1], done.stderr)
    done = traced.kymo("doctor", words[0])
    traced.check("the reason in doctor", reason in done.stdout, done.stdout[:1000])


def other_unwinders(folder):
    """Exceptions that are not libgcc's, or a libgcc's that cannot be found, arrive."""
    source, ran = written(f"{folder}/throws.cc", THROWS), 0
    for name, reason, words in (("llvm", "its unwinder is not libgcc's", ("clang++", "-stdlib=libc++")),
                                ("llvm-static", "", ("clang++", "-stdlib=libc++", "-static", "-lc++", "-lc++abi")),
                                ("gcc-static-stripped", "an unwinder of its own", ("g++", *STATIC)),
                                ("gcc-static", "", ("g++", *STATIC[:2]))):
        program = f"{folder}/{name}"
        if not compiled(program, words[0], "-O1", source, *words[1:]) or traced.bare([program]).returncode:
            print(f"  {name}: cannot be built here")
            continue
        path = traced.same_as_bare(folder, [program], "--engine", "patch", some=False)
        if "-s" not in words:
            seen = traced.number(path, "select count(*) from slice where name like 'deep%'")
            traced.check(f"{name}: calls", seen == 275, seen)
        # Some systems have libc++ with libgcc's unwinder.
        if "-s" in words or "libunwind" in traced.bare(["ldd", program]).stdout.decode():
            check_reason(folder, [program], reason)
        ran += 1
    return None if ran else "no compiler here"


def unwinder_that_is_loaded_later(folder):
    """A library brings an unwinder that cannot be found: functions that were hooked before are hooked no more."""
    host, guest = written(f"{folder}/host.c", HOST), written(f"{folder}/guest.cc", GUEST)
    if not compiled(f"{folder}/host", "gcc", "-O1", "-fexceptions", host, "-ldl") or \
            not compiled(f"{folder}/guest.so", "g++", "-O1", "-shared", "-fPIC", *STATIC, guest):
        return "no compiler here"
    path = traced.same_as_bare(folder, [f"{folder}/host", f"{folder}/guest.so"], "--engine", "patch")
    whole, all_of_them = traced.query(path, "select sum(dur > 0), count(*) from slice where name = 'through'")[0]
    traced.check("all calls", all_of_them == "90" or traced.lost(path), all_of_them)
    traced.check("those before it were hooked", whole == "10", whole)
    return None


def luajit(folder):
    """Its personality compares addresses of frames."""
    if not shutil.which("luajit"):
        return "no luajit here"
    words = ["luajit", "-e", "for i = 1, 100 do print(pcall(error, i)) end"]
    traced.same_as_bare(folder, words, "--engine", "patch", some=False)
    return None


GS = """#include <asm/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int arch_prctl(int code, unsigned long address);
static uint64_t own[2] = {42, 43};
__attribute__((noinline)) uint64_t next(uint64_t n)
{
	uint64_t first;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(first));
	return n + first;
}
__attribute__((noinline)) uint64_t before(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}
__attribute__((noinline)) int set(void)
{
	return SET;
}
int main(void)
{
	uint64_t sum = before(1);
	if (set())
		return 1;
	for (int i = 0; i < 1000; i++)
		sum = next(sum);
	printf("%lu\\n", (unsigned long)before(sum));
	return 0;
}
"""


WRITES_GS = """#include <immintrin.h>
#ifdef LIBRARY
static unsigned long own[2] = {42, 43};
void set(void)
{
	_writegsbase_u64((unsigned long)own);
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
__attribute__((noinline)) unsigned long next(unsigned long n)
{
	unsigned long first;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(first));
	return n + first;
}
int main(int count, char **words)
{
	unsigned long sum = 0;
	void (*set)(void);
	void *symbol = dlsym(count > 1 ? dlopen(words[1], RTLD_NOW) : RTLD_DEFAULT, "set");
	if (!symbol || !(getauxval(AT_HWCAP2) & 2))
		return 77;
	memcpy(&set, &symbol, sizeof(set));
	set();
	for (int i = 0; i < 1000; i++)
		sum = next(sum);
	printf("%lu\\n", sum);
	return 0;
}
#endif
"""


def library_that_writes_gs(folder):
    """wrgsbase asks nobody: a program or library that has it is not patched, also when it is loaded later."""
    source = written(f"{folder}/writes.c", WRITES_GS)
    words = ("gcc", "-O1", "-mfsgsbase", source)
    if not compiled(f"{folder}/libwrites.so", *words, "-shared", "-fPIC", "-DLIBRARY") or \
            not compiled(f"{folder}/later", *words, "-ldl") or \
            not compiled(f"{folder}/linked", *words, "-ldl", f"-L{folder}", "-Wl,--no-as-needed", "-lwrites",
                         f"-Wl,-rpath,{folder}"):
        return "no compiler here"
    for program in ([f"{folder}/later", f"{folder}/libwrites.so"], [f"{folder}/linked"]):
        if traced.bare(program).returncode == 77:
            return "the kernel does not allow wrgsbase"
        traced.same_as_bare(folder, program, some=False)
    return None


def program_that_sets_gs(folder):
    """gs is the program's from then on; calls before that are seen."""
    source, ran = written(f"{folder}/gs.c", GS), 0
    for how in ("arch_prctl(ARCH_SET_GS, (unsigned long)own)", "(int)syscall(SYS_arch_prctl, ARCH_SET_GS, own)"):
        for link in ((), ("-static",)):
            if not compiled(f"{folder}/gs", "gcc", "-O1", f"-DSET={how}", source, *link):
                continue
            path = traced.same_as_bare(folder, [f"{folder}/gs"], "--engine", "patch", some=False)
            traced.check(f"{how} {link}: calls", traced.calls(path, "before") == 1, traced.calls(path, "before"))
            ran += 1
    return None if ran else "no compiler here"


CALLCC = """require 'continuation'
def deep(n) n == 0 ? callcc { |c| $c ||= c; 0 } : deep(n - 1) + 1 end
$n = 0
print deep(20), ' ', $n += 1, "\\n"
$c.call($n) if $n < 20
f = Fiber.new { 10.times { |i| Fiber.yield deep(5) + i }; :done }
11.times { p f.resume }
"""
GREENLETS = """import greenlet
def deep(n, f):
    return f() if n == 0 else deep(n - 1, f) + 1
def worker(k):
    t = 0
    for i in range(20):
        t += deep(k, lambda: main.switch(i) or 0)
        t += len(sorted([3, 2, 1], key=lambda x: main.switch(x) or x))
    return t
main = greenlet.getcurrent()
workers = [greenlet.greenlet(worker) for _ in range(6)]
seen = [w.switch(k * 3) for k, w in enumerate(workers)]
while any(not w.dead for w in workers):
    seen += [w.switch(None) for w in workers if not w.dead]
print(len(seen), seen[-6:])
"""
CONTINUES = """(define k #f) (define n 0)
(define (deep m) (if (= m 0) (call/cc (lambda (c) (set! k c) 0)) (+ 1 (deep (- m 1)))))
(display (apply + (map deep '(1 2 3 4 5))))
(set! n (+ n 1))
(if (< n 10) (k n))
"""


def stacks_that_are_copied(folder):
    """A copy of a stack that is put back returns through hooks that others have used in between."""
    ran = 0
    for words, name, text in ((["ruby", "-W0"], "callcc.rb", CALLCC), (["/usr/bin/python3"], "greenlets.py", GREENLETS),
                              (["guile", "--no-auto-compile"], "continues.scm", CONTINUES)):
        words = [*words, written(f"{folder}/{name}", text)]
        if not shutil.which(words[0]) or traced.bare(words).returncode:
            print(f"  {name}: cannot run here")
            continue
        traced.same_as_bare(folder, words, "--engine", "patch")
        ran += 1
    return None if ran else "nothing that copies stacks here"


FIBERS = """#include <stdio.h>
#include <ucontext.h>
static ucontext_t outside, inside[8];
static char stacks[8][65536];
static int sum;
__attribute__((noinline)) static int work(int n)
{
	char text[32];
	return snprintf(text, sizeof(text), "%d", n);
}
__attribute__((noinline)) static int turn(int me, int n)
{
	swapcontext(&inside[me], &outside);
	return work(n);
}
static void runs(int me)
{
	for (int i = 0; i < 100; i++)
		sum += turn(me, i * me);
}
int main(void)
{
	for (int i = 0; i < 8; i++) {
		getcontext(&inside[i]);
		inside[i].uc_stack.ss_sp = stacks[i];
		inside[i].uc_stack.ss_size = sizeof(stacks[i]);
		inside[i].uc_link = &outside;
		makecontext(&inside[i], (void (*)(void))runs, 1, i);
	}
	for (int i = 0; i < 8 * 101; i++)
		swapcontext(&outside, &inside[i % 8]);
	printf("%d\\n", sum);
	return 0;
}
"""
BOOST = """#include <boost/context/fiber.hpp>
#include <cstdio>
namespace context = boost::context;
__attribute__((noinline)) static int work(int n)
{
	char text[32];
	return std::snprintf(text, sizeof(text), "%d", n);
}
int main()
{
	int sum = 0;
	for (int round = 0; round < 50; round++) {
		int seen = 0;
		context::fiber fiber{[&](context::fiber &&other) {
			for (int i = 0; i < 20; i++) {
				seen += work(i);
				other = std::move(other).resume();
			}
			try {
				throw work(7);
			} catch (int n) {
				seen += n;
			}
			return std::move(other);
		}};
		for (int i = 0; i <= 20; i++) {
			fiber = std::move(fiber).resume();
			sum += work(seen);
		}
	}
	std::printf("%d\\n", sum);
}
"""


def stacks_that_are_switched(folder):
    """Return slots are found by address: a stack of its own is no different from a thread's."""
    ran = 0
    for name, text, words, calls in (("fibers.c", FIBERS, ("gcc", "-O1"), 800), ("boost.cc", BOOST, ("g++", "-O1"), 2100)):
        source = written(f"{folder}/{name}", text)
        if not compiled(f"{folder}/{name}.out", *words, source, *(["-lboost_context"] if name == "boost.cc" else [])):
            print(f"  {name}: cannot be built here")
            continue
        path = traced.same_as_bare(folder, [f"{folder}/{name}.out"], "--engine", "patch")
        seen = traced.number(path, "select count(*) from slice where name like 'work%'")
        traced.check(f"{name}: calls", seen == calls, seen)
        ran += 1
    return None if ran else "no compiler here"


LOCKS = """#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) int next(int n)
{
	char text[32];
	return snprintf(text, sizeof(text), "%d", n);
}
int main(int count, char **words)
{
	int c, sum = 0;
	if (count > 1 && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 77;
	puts(words[0]);
	fflush(stdout);
	while ((c = getchar()) != EOF) {
		sum += next(c);
		printf("%d\\n", sum);
		fflush(stdout);
	}
	return 0;
}
"""


def memory_of(pid):
    """The sizes in /proc/PID/status, in KiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return {line.split(":")[0]: int(line.split()[1]) for line in file if line.startswith("Vm")}


def memory_is_given_back(folder):
    """After each attach the program has about the memory that it had; none of kymo's is ever locked."""
    if not compiled(f"{folder}/locks", "gcc", "-O1", written(f"{folder}/locks.c", LOCKS)):
        return "no compiler here"
    for words in ([f"{folder}/locks"], [f"{folder}/locks", "all"]):
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            if not process.stdout.readline():
                print("  memory cannot be locked here")
                continue
            before = memory_of(process.pid)
            for _ in range(3):
                with subprocess.Popen([traced.KYMO, "attach", "--functions", "--engine", "patch", "-p", str(process.pid),
                                       "-o", f"{folder}/a.kymo"], stderr=subprocess.PIPE, text=True) as kymo:
                    kymo.stderr.readline()  # it traces now
                    for _ in range(100):
                        process.stdin.write(b"x")
                        process.stdin.flush()
                        process.stdout.readline()
                    within = memory_of(process.pid)
                    kymo.send_signal(signal.SIGINT)
                    kymo.stderr.read()
                traced.check("attach", kymo.returncode == 0, kymo.returncode)
                traced.check("calls", traced.calls(f"{folder}/a.kymo", "next") == 100, traced.calls(f"{folder}/a.kymo", "next"))
                after = memory_of(process.pid)
                for name, now, more in (("VmLck", within, 256), ("VmRSS", within, 32 << 10), ("VmSize", within, 64 << 10),
                                        ("VmLck", after, 256), ("VmRSS", after, 32 << 10), ("VmSize", after, 32 << 10)):
                    traced.check(f"{name} of {words}", now[name] <= before[name] + more, (before, within, after))
            process.stdin.close()
            traced.check("its end", process.wait() == 0, process.returncode)
    return None


TRACEFS = "/sys/kernel/tracing"


def put(name, text):
    """Write to a file of tracefs without emptying it."""
    file = os.open(f"{TRACEFS}/{name}", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def ask(process):
    """One call of next(); its answer, or nothing when the program has died."""
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"x")
        process.stdin.flush()
    return process.stdout.readline()


def uprobes_of_others(folder):
    """A uprobe on a function that is patched does not kill the program, whenever it comes and goes."""
    program = f"{folder}/locks"
    if not compiled(program, "gcc", "-O1", written(f"{folder}/locks.c", LOCKS)):
        return "no compiler here"
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    address = next(line.split()[0] for line in names if line.endswith(" T next"))
    event = f"kymo_test_{os.getpid()}/next"
    for first in ("kymo", "uprobe"):
        try:
            put("uprobe_events", f"p:{event} {program}:0x{address}\n")
        except OSError as error:
            return f"no uprobes here: {error}"
        try:
            with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                if first == "uprobe":
                    put(f"events/{event}/enable", "1")
                with subprocess.Popen([traced.KYMO, "attach", "--functions", "--engine", "patch", "-p", str(process.pid),
                                       "-o", f"{folder}/u.kymo"], stderr=subprocess.PIPE, text=True) as kymo:
                    while "functions: patch" not in (line := kymo.stderr.readline()) and line:
                        pass
                    answers = [ask(process)]
                    put(f"events/{event}/enable", "1")
                    answers += [ask(process), ask(process)]
                    kymo.send_signal(signal.SIGINT)
                    kymo.stderr.read()
                answers.append(ask(process))
                put(f"events/{event}/enable", "0")
                answers.append(ask(process))
                process.stdin.close()
                traced.check(f"{first} first: its end", process.wait() == 0, process.returncode)
                traced.check(f"{first} first: its answers", [int(n or 0) for n in answers] == [3, 6, 9, 12, 15], answers)
        finally:
            put(f"events/{event}/enable", "0")
            put("uprobe_events", f"-:{event}\n")
    return None


GROWS = """#include <stdio.h>
#include <sys/mman.h>
enum { BYTES = 4 << 20, MAX = 256 };
static char *all[MAX];
static int count;
__attribute__((noinline)) int next(int n)
{
	for (int i = 0; i < count; i++)
		for (int at = 0; at < BYTES; at += 4096)
			if (all[i][at] != (at ? 0 : i + 1 & 127))
				return -1;
	return n;
}
int main(void)
{
	int c;
	puts("ready");
	fflush(stdout);
	while ((c = getchar()) != EOF) {
		if (c == '+' && count < MAX) {
			all[count] = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			all[count][0] = count + 1 & 127;
			count++;
		}
		printf("%d\\n", next(c));
		fflush(stdout);
	}
	return 0;
}
"""


def memory_that_is_mapped_in_between(folder):
    """What a program maps after tracing has ended is its own, wherever it is: the next attach leaves it alone."""
    if not compiled(f"{folder}/grows", "gcc", "-O1", written(f"{folder}/grows.c", GROWS)):
        return "no compiler here"
    with subprocess.Popen([f"{folder}/grows"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def asked(letter):
            process.stdin.write(letter)
            process.stdin.flush()
            return process.stdout.readline()

        process.stdout.readline()
        for _ in range(4):
            with subprocess.Popen([traced.KYMO, "attach", "--functions", "--engine", "patch", "-p", str(process.pid),
                                   "-o", f"{folder}/a.kymo"], stderr=subprocess.PIPE, text=True) as kymo:
                kymo.stderr.readline()  # it traces now
                traced.check("its memory while it is traced", asked(b"x") == b"120\n")
                kymo.send_signal(signal.SIGINT)
                kymo.stderr.read()
            traced.check("attach", kymo.returncode == 0, kymo.returncode)
            if process.poll() is None:
                traced.check("its memory", all(asked(b"+") == b"43\n" for _ in range(40)))
        process.stdin.close()
        traced.check("its end", process.wait() == 0, process.returncode)
    return None


def fib(depth, n):
    return [(depth, "fib")] + ([] if n < 2 else fib(depth + 1, n - 1) + fib(depth + 1, n - 2))


RECURSION = """#include <stdio.h>
__attribute__((noinline)) int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__attribute__((noinline)) int deep(int n)
{
	char text[16];
	int result = n ? deep(n - 1) : 0;
	return result + snprintf(text, sizeof(text), "%d", n);
}
int main(void)
{
	printf("%d %d\\n", fib(15), deep(5000));
	return 0;
}
"""


def recursion(folder):
    """Calls are kept however deep they are; the report counts the time of recursive ones once, and sorts by self time."""
    if not compiled(f"{folder}/recurs", "gcc", "-O1", written(f"{folder}/recurs.c", RECURSION)):
        return "no compiler here"
    path = traced.same_as_bare(folder, [f"{folder}/recurs"], "--functions=fib,deep,main", "--engine", "patch")
    seen = traced.query(path, "select count(*), max(depth) from slice where name = 'deep'")[0]
    traced.check("all calls, with their depth", traced.lost(path) or (seen[0] == "5001" and int(seen[1]) >= 5000), seen)
    done = traced.kymo("report", "--json", path)
    rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    total = {row["name"]: row["total_ns"] for row in rows}
    traced.check("recursive time once", total and total["fib"] <= total["main"] and total["deep"] <= total["main"], total)
    selves = [row["self_ns"] for row in rows]
    traced.check("sorted by self time", selves == sorted(selves, reverse=True), selves)
    return None


def instrumented(folder):
    """-finstrument-functions: the loader has not relocated a library that it stops for; the exit hook may be a jump."""
    source, ran = f"{TORTURE}/tree.c", 0
    last = [(1, "last"), (2, "leaf"), (3, "inlined")]
    turn = [(1, "goes"), (2, "jumps"), *last, (1, "large"), *((depth + 1, name) for depth, name in last)]
    entry = [(1, "entry"), (2, "leaf"), (2, "leaf")]
    tree = [(0, "main"), (1, "begins"), (2, "leaf"), *turn, *turn, *turn, *entry, *fib(1, 6)]
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O2"):
            words = (compiler, level, "-finstrument-functions", source, "-Wl,-z,lazy")
            if not compiled(f"{folder}/libtree.so", *words, "-shared", "-fPIC", "-DLIBRARY") or \
                    not compiled(f"{folder}/tree", *words, "-ldl"):
                continue
            path = traced.same_as_bare(folder, [f"{folder}/tree", f"{folder}/libtree.so"], "--engine", "nops")
            rows = traced.query(path, "select depth, name from slice where name not like 'off CPU%' order by ts, depth")
            seen = [(int(depth), name) for depth, name in rows]
            traced.check(f"{compiler} {level}: the tree", seen == tree or traced.lost(path), seen)
            ran += 1
    return None if ran else "no compiler here"


SCENARIOS = (instrumented, recursion, memory_is_given_back, memory_that_is_mapped_in_between, uprobes_of_others,
             stacks_that_are_copied, stacks_that_are_switched,
             libraries_in_turn, other_unwinders, unwinder_that_is_loaded_later, luajit, program_that_sets_gs,
             library_that_writes_gs)

if __name__ == "__main__":
    sys.exit(traced.run_scenarios([(scenario.__name__, scenario) for scenario in SCENARIOS], sys.argv[2:]))
