# SPDX-License-Identifier: MIT
# A thin layer over meson. Every target first installs missing dependencies (tools/deps.sh).
#
#   make                 build the library and the tool into build/
#   make demo            run the demo, record it in every format, and view it in the browser
#   make test            build and run the tests
#   make proof           run the long tests: two hours, with Debian's programs and on a bare machine; KYMO_STRESS_SECONDS=1800
#   make fuzz            search for inputs that break a parser; FUZZ_SECONDS=60 each, TARGET=name for one
#   make bench           build and run the benchmarks
#   make viewer          build the page of kymo view, viewer/dist/index.html (with npm), and the tool with it
#   make screenshots     take the README's screenshots again
#   make install         install; PREFIX=/usr/local, LIBDIR= below it, DESTDIR= for packagers
#   make amalgamation    write build/amalgamation/kymo.h and kymo.c
#   make format          format the sources in the house style
#   make lint            check the style, the layers, the English; run clang-tidy
#   make clean           remove the build folders
BUILD ?= build
PREFIX ?= /usr/local
SETUP ?=
# The folder of libraries below PREFIX: the one that holds the system's own C library, as lib/x86_64-linux-gnu,
# lib64 or lib. Left to itself, meson decides by which packages are installed.
LIBDIR ?= $(shell tools/libdir.sh)

.PHONY: all demo test proof fuzz bench viewer screenshots install amalgamation format lint clean deps
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) product

deps:
	@tools/deps.sh build

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) --libdir=$(LIBDIR) $(SETUP)

demo: all
	@ninja -C $(BUILD) examples/demo
	@tools/demo.sh $(BUILD)

# cmocka may be newer than the build folder: from here on the tests are required.
$(BUILD)/.tests: | $(BUILD)/build.ninja
	@tools/deps.sh test
	@meson configure $(BUILD) -Dtests=enabled
	@touch $@

test: $(BUILD)/.tests
	@tools/deps.sh test
	@meson test -C $(BUILD) --print-errorlogs; code=$$?; tools/ci_results.py --skipped $(BUILD); exit $$code

proof: $(BUILD)/.tests
	@tools/deps.sh test proof
	@meson test -C $(BUILD) --print-errorlogs --suite proof

fuzz:
	@tools/deps.sh test
	@tools/fuzz.sh $(TARGET)

bench: all
	@ninja -C $(BUILD) benchmarks
	@$(BUILD)/bench/bench

# Meson looks for the page only when it configures.
viewer: $(BUILD)/build.ninja
	@tools/viewer.sh build
	@meson setup --reconfigure $(BUILD) > /dev/null
	@ninja -C $(BUILD) product

screenshots: all
	@ninja -C $(BUILD) examples/demo
	@tools/deps.sh test
	@tools/viewer.sh screenshots $(BUILD)

install: $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) -Dlibdir=$(LIBDIR)
	@ninja -C $(BUILD) product
	@meson install -C $(BUILD) --no-rebuild
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ] && command -v ldconfig > /dev/null; then ldconfig; fi

amalgamation: $(BUILD)/build.ninja
	@ninja -C $(BUILD) amalgamation

format:
	@tools/deps.sh lint
	@tools/lint.sh format

lint: all
	@tools/deps.sh lint
	@tools/lint.sh check $(BUILD)

clean:
	@rm -rf build build-clang build-asan build-tsan build-fuzz $(BUILD)
