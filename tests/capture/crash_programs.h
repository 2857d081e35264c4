/* SPDX-License-Identifier: MIT */
/*
 * crash_programs.h: the programs that the tests of the crash watch watch. The test's own binary is
 * started again with one of their names. Each writes a thread id (i32) to standard output when it
 * is ready, then waits for a byte or the end of its input. Those that end well end with 7.
 */
#ifndef KY_TESTS_CRASH_PROGRAMS_H
#define KY_TESTS_CRASH_PROGRAMS_H

int crash_program(int argc, char **argv);

#endif
