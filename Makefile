# SPDX-License-Identifier: MIT
# A thin layer over meson. Every target first installs what it needs and is missing (tools/deps.sh).
#
#   make                 build the library and the tools into build/
#   make demo            run the demo, record it in every format, and look at it in the browser
#   make test            build and run the tests
#   make proof           the long tests of function tracing: an hour, with the programs of Debian that are there
#   make fuzz            search for inputs that break a parser; FUZZ_SECONDS=60 each, TARGET=name for one
#   make bench           run the benchmarks
#   make viewer          build the page of kymo view, viewer/dist/index.html (with npm), and the tool with it
#   make screenshots     make the pictures of the README anew
#   make install         install; PREFIX=/usr/local, DESTDIR= for packagers
#   make amalgamation    write build/amalgamation/kymo.h and kymo.c
#   make format          put the sources into the house style
#   make lint            check the style and run clang-tidy
#   make clean           remove the build folders
BUILD ?= build
PREFIX ?= /usr/local
SETUP ?=

.PHONY: all demo test proof fuzz bench viewer screenshots install amalgamation format lint clean deps
all: $(BUILD)/build.ninja
	@meson compile -C $(BUILD)

deps:
	@tools/deps.sh build

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(SETUP)

demo: all
	@tools/demo.sh $(BUILD)

# cmocka may have come after the build folder was set up: from here on the tests are required.
$(BUILD)/.tests: | $(BUILD)/build.ninja
	@tools/deps.sh test
	@meson configure $(BUILD) -Dtests=enabled
	@touch $@

test: $(BUILD)/.tests
	@tools/deps.sh test
	@meson test -C $(BUILD) --print-errorlogs

proof: $(BUILD)/.tests
	@tools/deps.sh test proof
	@meson test -C $(BUILD) --print-errorlogs --suite proof

fuzz:
	@tools/deps.sh test
	@tools/fuzz.sh $(TARGET)

bench: all
	@[ -x $(BUILD)/bench/bench ] || { echo "bench: $(BUILD)/bench/bench is not built" >&2; exit 1; }
	@$(BUILD)/bench/bench

# The build looks for the page when it is set up.
viewer: $(BUILD)/build.ninja
	@tools/viewer.sh build
	@meson setup --reconfigure $(BUILD) > /dev/null
	@meson compile -C $(BUILD)

screenshots: all
	@tools/deps.sh test
	@tools/viewer.sh screenshots $(BUILD)

install: $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@meson install -C $(BUILD)

amalgamation: $(BUILD)/build.ninja
	@meson compile -C $(BUILD) amalgamation

format:
	@tools/deps.sh lint
	@tools/lint.sh format

lint: $(BUILD)/build.ninja
	@tools/deps.sh lint
	@tools/lint.sh check $(BUILD)

clean:
	@rm -rf build build-clang build-asan build-tsan build-fuzz $(BUILD)
